//go:build linux

package bed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Down ends a test bed and removes what it was made of. It does so as well
// for one whose programs were killed at any time; without one, there is
// nothing to do.
func Down(ctx context.Context, dir string) error {
	dir, err := stateDir(dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock, err := lockDir(ctx, dir)
	if err != nil {
		return err
	}
	defer unlock()
	s, err := readState(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return removeEmpty(dir)
	}
	if err != nil {
		return err
	}
	return end(dir, s)
}

// removeEmpty removes the folder of an Up that was killed before its first
// file, and no other that somebody named by mistake.
func removeEmpty(dir string) error {
	if err := unix.Rmdir(dir); err != nil {
		return fmt.Errorf("%s is no state folder of a test bed: %w", dir, err)
	}
	return nil
}

// end kills the supervisor, and so everything, and removes what is left.
func end(dir string, s state) error {
	if err := kill(s); err != nil {
		return err
	}
	if err := remove(dir, s); err != nil {
		return err
	}
	return os.Remove(dir)
}

// kill kills the supervisor and waits for its end, before which the kernel
// ends all that is inside.
func kill(s state) error {
	if s.Init == 0 {
		return nil
	}
	fd, err := unix.PidfdOpen(s.Init, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("supervisor %d: %w", s.Init, err)
	}
	defer unix.Close(fd)
	// The number may be another's by now; this descriptor will not be.
	if !s.alive() {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill supervisor %d: %w", s.Init, err)
	}
	deadline := time.Now().Add(s.Options.limit(time.Minute))
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return fmt.Errorf("supervisor %d was killed but does not end", s.Init)
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if n > 0 {
			return nil
		}
	}
}

// remove removes a dead test bed's cgroups and files, the one that names them
// last; the folder stays, with its lock.
func remove(dir string, s state) error {
	if err := removeGroup(s.Options.limit(10*time.Second), groupName(s.ID)); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if path == stateFile(dir) {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return os.Remove(stateFile(dir))
}

// lockDir makes the state folder and holds it against another Up or Down. The
// lock is the folder's own, so no file is left.
func lockDir(ctx context.Context, dir string) (unlock func(), err error) {
	for {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		folder, err := os.Open(dir)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(folder.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			if held, err := folder.Stat(); err == nil {
				// It may have been removed while we waited.
				if now, err := os.Stat(dir); err == nil && os.SameFile(held, now) {
					return func() { folder.Close() }, nil
				}
			}
		} else if !errors.Is(err, unix.EWOULDBLOCK) {
			folder.Close()
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
		folder.Close()
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%s is held by another testbed command: %w", dir, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}
