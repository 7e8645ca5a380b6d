package fdtable

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Own gives the calling thread a file table of its own, a copy of the
// process's (unshare(2), CLONE_FILES). The kernel wants no rights for that; a
// seccomp filter may refuse it with EPERM. What the thread
// opens and closes from then on the other threads don't see, and the reverse:
// files that were open stay open until the thread ends, whoever closes them.
// So call it early, from a goroutine that is locked to its thread and never
// unlocks it: the thread then ends with the goroutine.
func Own() error {
	if err := unix.Unshare(unix.CLONE_FILES); err != nil {
		return fmt.Errorf("a file table for a thread: %w", os.NewSyscallError("unshare", err))
	}
	return nil
}

// Limit is how many files one table may hold: RLIMIT_NOFILE, after raising
// the soft limit to the hard one.
func Limit() (int, error) {
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
		return 0, fmt.Errorf("limit on open files: %w", os.NewSyscallError("getrlimit", err))
	}
	if lim.Cur < lim.Max {
		lim.Cur = lim.Max
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
			return 0, fmt.Errorf("raise the limit on open files to %d: %w", lim.Max, os.NewSyscallError("setrlimit", err))
		}
	}
	return int(min(lim.Cur, 1<<30)), nil
}
