package vm

import (
	"os"
	"path/filepath"
	"strings"
)

// guestsOwn lists the folders that every guest has for itself: those of the kernel, and those
// that are empty at boot.
var guestsOwn = []string{"/proc", "/sys", "/dev", "/run"}

// Shareable returns the path of a folder that a guest may write, with symbolic links resolved,
// because the guest cannot follow them. It returns a *Misuse if the path is not a folder, or if
// it is, holds or lies in one of guestsOwn.
func Shareable(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", misuse("shared folder: %w", err)
	}
	if info, err := os.Stat(path); err != nil {
		return "", misuse("shared folder: %w", err)
	} else if !info.IsDir() {
		return "", misuse("shared folder %s: not a folder", dir)
	}
	if within(path, "/dev/shm") {
		return path, nil
	}
	for _, own := range guestsOwn {
		if within(path, own) || within(own, path) {
			return "", misuse("shared folder %s: a guest has a %s of its own, and the host's is not for writing; name a folder elsewhere", dir, own)
		}
	}
	return path, nil
}

// within reports whether the path is dir or lies in it. Both must be clean.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
