package vm

import (
	"os"
	"path/filepath"
	"strings"
)

// guestsOwn are the folders that every guest has of its own: the host's kernel
// and what belongs to this boot of it.
var guestsOwn = []string{"/proc", "/sys", "/dev", "/run"}

// Shareable is the path of a folder that a guest may write, without symbolic
// links, which mean another place before the guest has its root. Errors:
// *Misuse for what is no folder, or is, holds or lies in one of guestsOwn.
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

// within says whether the path is dir or lies in it; both are clean.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
