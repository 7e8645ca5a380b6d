//go:build linux

package bed

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// checkOwner returns an error where another user could have written the state
// folder: its file names a program that root executes and a process that Down
// kills. The folder belongs to the effective user, and nobody else can write to
// it or put another folder in its place. Errors: fs.ErrNotExist.
func checkOwner(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if owner := owner(info); !info.IsDir() || owner != os.Geteuid() || writable(info) {
		return fmt.Errorf("state folder %s (%s, user %d) is not believed: it must be a folder of user %d that nobody else can write to; name another with --dir",
			dir, info.Mode(), owner, os.Geteuid())
	}
	for dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		info, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		// In a folder with the sticky bit, such as /tmp, only its owner renames a file.
		if owner := owner(info); owner != 0 && owner != os.Geteuid() || writable(info) && info.Mode()&fs.ModeSticky == 0 {
			return fmt.Errorf("the state folder is not believed: user %d can replace it, as %s is %s; name another with --dir", owner, dir, info.Mode())
		}
	}
	return nil
}

func owner(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

// writable reports whether others than the owner can write; a symbolic link's
// own mode means nothing, its owner does.
func writable(info fs.FileInfo) bool {
	return info.Mode()&fs.ModeSymlink == 0 && info.Mode().Perm()&0o022 != 0
}
