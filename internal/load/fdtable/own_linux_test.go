package fdtable

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// onOwnThread runs fn on a thread with a table of its own. The thread ends,
// and its table with it, when release is closed.
func onOwnThread(fn func() error, release <-chan struct{}) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := Own()
		if err == nil {
			err = fn()
		}
		done <- err
		<-release
	}()
	return <-done
}

// Two threads hold more files together than one table may.
func TestTablesCountSeparately(t *testing.T) {
	limit, err := Limit()
	if err != nil {
		t.Fatal(err)
	}
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil || int(before.Cur) != limit {
		t.Fatalf("soft limit %d, want %d as Limit says; %v", before.Cur, limit, err)
	}
	const low, each = 100, 60
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: low, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
			t.Error(err)
		}
	}()
	release := make(chan struct{})
	defer close(release)
	for range 2 {
		err := onOwnThread(func() error {
			for range each {
				if _, err := unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
					return err
				}
			}
			return nil
		}, release)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// What a thread opens in its own table is no file of the others.
func TestOwnTableIsSeparate(t *testing.T) {
	const number = 90
	release := make(chan struct{})
	defer close(release)
	err := onOwnThread(func() error { return unix.Dup3(0, number, unix.O_CLOEXEC) }, release)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(number, unix.F_GETFD, 0); err != unix.EBADF {
		t.Errorf("file %d of another thread's table: %v, want %v", number, err, unix.EBADF)
	}
}
