package vm

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/atomicfile"
)

// DefaultVersion is the kernel that Find takes if none is named. It is new enough for every
// datapath of the catalogue.
const DefaultVersion = "6.12"

// CacheDir returns the folder of the cache: $XDG_CACHE_HOME/cnibench, else /var/cache/cnibench
// for root and ~/.cache/cnibench for others.
func CacheDir() string {
	if dir := os.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "cnibench")
	}
	if home, err := os.UserHomeDir(); err == nil && os.Geteuid() != 0 {
		return filepath.Join(home, ".cache", "cnibench")
	}
	return "/var/cache/cnibench"
}

// kernelsDir returns the folder with a folder for each kernel of the cache, named after its
// release. A name that starts with a dot is unfinished.
func kernelsDir() string { return filepath.Join(CacheDir(), "kernels") }

// Kernels returns the kernels in the cache and those installed on this machine, newest first.
// It skips folders that cannot be read.
func Kernels() []Kernel {
	var kernels []Kernel
	for _, place := range []struct{ pattern, source string }{
		{kernelsDir() + "/[0-9]*/boot/vmlinuz-*", "cache"},
		{"/boot/vmlinuz-*", "installed"},
	} {
		images, _ := filepath.Glob(place.pattern) // the pattern is well formed
		for _, image := range images {
			k, err := Open(image, "")
			if err != nil || slices.ContainsFunc(kernels, func(other Kernel) bool { return other.Release == k.Release }) {
				continue
			}
			k.Source = place.source
			kernels = append(kernels, k)
		}
	}
	slices.SortStableFunc(kernels, func(a, b Kernel) int { return compareReleases(b.Release, a.Release) })
	return kernels
}

// compareReleases compares two releases by the numbers in them.
func compareReleases(a, b string) int {
	return cmp.Or(slices.Compare(numbers(a), numbers(b)), strings.Compare(a, b))
}

func numbers(release string) []int {
	var list []int
	for _, field := range strings.FieldsFunc(release, func(r rune) bool { return r < '0' || r > '9' }) {
		n, err := strconv.Atoi(field)
		if err != nil {
			break // longer than any version
		}
		list = append(list, n)
	}
	return list
}

// isVersion reports whether the text is a version such as 6.12, and not a path.
func isVersion(text string) bool {
	return text != "" && strings.Trim(text, "0123456789.") == "" && strings.Contains(text, ".")
}

// ofVersion reports whether a release belongs to the version: 6.1.0-56-amd64 belongs to 6.1 and
// 6.1.0, and not to 6.12.
func ofVersion(release, version string) bool {
	want, have := numbers(version), numbers(release)
	return len(have) >= len(want) && slices.Equal(have[:len(want)], want)
}

// errInUse means that a guest or a download uses the file that was to be removed.
var errInUse = errors.New("in use by a guest or a download; clean again when that has ended")

// Clean removes what a crash can have left in the cache. If all is set, it also removes every
// kernel and the results of probing KVM. It returns the paths that it removed. A file in use
// stays; that is an error unless the file is temporary.
func Clean(all bool) ([]string, error) {
	patterns := []string{kernelsDir() + "/.*", CacheDir() + "/kvm-*.json" + atomicfile.Pending}
	if all {
		patterns = append(patterns, kernelsDir()+"/*", CacheDir()+"/kvm-*.json")
	}
	var removed []string
	var errs []error
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		errs = append(errs, err)
		for _, path := range found {
			switch err := remove(path); {
			case err == nil:
				removed = append(removed, path)
			case errors.Is(err, os.ErrNotExist): // the process that made it has removed it
			case errors.Is(err, errInUse) && strings.HasPrefix(filepath.Base(path), "."):
			default:
				errs = append(errs, fmt.Errorf("cache: %w", err))
			}
		}
	}
	if all {
		for _, dir := range []string{kernelsDir(), CacheDir()} {
			if os.Remove(dir) == nil { // only if the folder is empty
				removed = append(removed, dir)
			}
		}
	}
	return removed, errors.Join(errs...)
}

// remove removes the file or folder if no process holds its lock.
func remove(path string) error {
	unlock, err := lock(path, exclusive)
	if err != nil {
		return err
	}
	defer unlock()
	return os.RemoveAll(path)
}
