//go:build linux

package products

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cnibench/cnibench/testbed/internal/image"
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

// tarball writes the image into the cache and returns the path, whose name
// says what the image is made of: with the same files there is nothing to do.
func tarball(name, prefix string, files []image.File, log logf) (string, error) {
	key, err := fingerprint(name, files)
	if err != nil {
		return "", fmt.Errorf("image %s: %w", name, err)
	}
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
	err = image.Image{Name: name, Env: []string{searchPath}, Files: files}.Write(out)
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return "", fmt.Errorf("image %s: %w", name, err)
	}
	return path, os.Rename(out.Name(), path)
}

// fingerprint is another one when a file of the image is another one, going
// by sizes and times.
func fingerprint(name string, files []image.File) (string, error) {
	hash := sha256.New() // whose Write never fails
	_, _ = fmt.Fprintln(hash, name)
	for _, f := range files {
		_, _ = fmt.Fprintf(hash, "%q %v %q %q\n", f.Path, f.Mode, f.Link, f.Data)
		if f.Source == "" {
			continue
		}
		info, err := os.Stat(f.Source)
		if err != nil {
			return "", err
		}
		_, _ = fmt.Fprintln(hash, f.Source, info.Size(), info.ModTime().UnixNano())
	}
	return hex.EncodeToString(hash.Sum(nil))[:12], nil
}
