//go:build linux

package products

import (
	"fmt"
	"os"
	"path/filepath"

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

// tarball writes the image into the cache and returns the path. The key names
// what the image is made of: with the same key there is nothing to do, and
// files is not asked.
func tarball(name, key string, files func() ([]image.File, error), log logf) (string, error) {
	dir, err := cacheDir("images")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, key+".tar")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	log("writing image %s", name)
	all, err := files()
	if err != nil {
		return "", fmt.Errorf("image %s: %w", name, err)
	}
	out, err := os.CreateTemp(dir, key+"-")
	if err != nil {
		return "", err
	}
	defer os.Remove(out.Name())
	err = image.Image{Name: name, Env: []string{searchPath}, Files: all}.Write(out)
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return "", fmt.Errorf("image %s: %w", name, err)
	}
	return path, os.Rename(out.Name(), path)
}
