//go:build linux

package products

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/cnibench/cnibench/tools/image"
)

// searchPath is PATH in the containers, whose commands are bare names.
const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// cacheDir is a folder in the user's cache that lasts.
func cacheDir(name string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "cnibench", "testbed", name)
	return dir, os.MkdirAll(dir, 0o755)
}

// madeOnce returns the path of a file or folder of that name in a folder of the cache, and
// makes it if it is not there: under another name first, so that it is whole or not there.
func madeOnce(folder, name string, make func(path string) error) (string, error) {
	dir, err := cacheDir(folder)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	making, err := os.MkdirTemp(dir, "making-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(making)
	made := filepath.Join(making, name)
	if err := make(made); err != nil {
		return "", err
	}
	if err := os.Rename(made, path); err != nil && !os.IsExist(err) {
		return "", err
	}
	return path, nil
}

// tarball writes the image into the cache and returns the path, whose name
// says what the image is made of: with the same files and the same configuration
// there is nothing to do. PATH is added to it.
func tarball(name, prefix string, files *image.Tree, config v1.Config, log logf) (string, error) {
	config.Env = append([]string{searchPath}, config.Env...)
	content, err := files.Fingerprint()
	if err != nil {
		return "", fmt.Errorf("image %s: %w", name, err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %q %q %q", content, name, config.Env, config.Entrypoint, config.User))
	key := hex.EncodeToString(sum[:6])
	dir, err := cacheDir("images")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, prefix+"-"+key+".tar")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	// What this image was made of before is of no use any more.
	old, err := filepath.Glob(filepath.Join(dir, prefix+"-"+strings.Repeat("?", len(key))+".tar"))
	if err != nil {
		return "", err
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			return "", err
		}
	}
	log("writing image %s", name)
	out, err := os.CreateTemp(dir, "writing-")
	if err != nil {
		return "", err
	}
	defer os.Remove(out.Name())
	err = image.Write(out, name, image.Image{Config: config, Layers: []*image.Tree{files}})
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return "", err
	}
	return path, os.Rename(out.Name(), path)
}
