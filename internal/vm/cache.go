package vm

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// DefaultVersion is the kernel that Find takes when none is named: new enough
// for every datapath of the catalogue.
const DefaultVersion = "6.12"

// CacheDir is where kernels are kept: $XDG_CACHE_HOME/cnibench, else
// /var/cache/cnibench for root and ~/.cache/cnibench for others.
func CacheDir() string {
	if dir := os.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "cnibench")
	}
	if home, err := os.UserHomeDir(); err == nil && os.Geteuid() != 0 {
		return filepath.Join(home, ".cache", "cnibench")
	}
	return "/var/cache/cnibench"
}

// kernelsDir holds a folder for each kernel of the cache, named after its
// release; what starts with a dot is not finished.
func kernelsDir() string { return filepath.Join(CacheDir(), "kernels") }

// Kernels are those in the cache and those installed on this machine, newest
// first. Folders that can't be read hold none.
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

// compareReleases orders releases by the numbers in them.
func compareReleases(a, b string) int {
	as, bs := numbers(a), numbers(b)
	return cmp.Or(slices.Compare(as, bs), strings.Compare(a, b))
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

// isVersion says that the text is a version such as 6.12, rather than a path.
func isVersion(text string) bool {
	return text != "" && strings.Trim(text, "0123456789.") == "" && strings.Contains(text, ".")
}

// ofVersion says that a release is of that version: 6.1.0-56-amd64 is of 6.1
// and of 6.1.0, and not of 6.12.
func ofVersion(release, version string) bool {
	want, have := numbers(version), numbers(release)
	return len(have) >= len(want) && slices.Equal(have[:len(want)], want)
}

// Clean removes what a crashed download can have left in the cache and, if
// all is set, every kernel that was ever put there. It returns the paths
// that are gone.
func Clean(all bool) ([]string, error) {
	patterns := []string{kernelsDir() + "/.*"}
	if all {
		patterns = []string{CacheDir()}
	}
	var gone []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return gone, fmt.Errorf("cache: %w", err)
		}
		for _, path := range found {
			if base := filepath.Base(path); base == "." || base == ".." || inUse(path) {
				continue
			}
			if err := os.RemoveAll(path); err != nil {
				return gone, fmt.Errorf("cache: %w", err)
			}
			gone = append(gone, path)
		}
	}
	return gone, nil
}
