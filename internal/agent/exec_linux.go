package agent

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of every descendant whose own
// has died, even of one that left its session, so that none is out of reach.
func adoptOrphans() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // since Linux 3.4
}

// endDescendants kills the processes that the command has left behind and takes
// their exit status; the command itself must have been waited for. A process that
// hangs in the kernel is left alone after a while: it ends with the pod.
func endDescendants() {
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.ECHILD):
			return
		case pid > 0 || errors.Is(err, unix.EINTR):
			continue
		}
		for _, child := range children(os.Getpid()) {
			_ = unix.Kill(child, unix.SIGKILL)
		}
		time.Sleep(time.Millisecond)
	}
}

// children returns the processes whose parent is that one.
func children(parent int) []int {
	var list []int
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		// proc(5): pid (comm) state ppid, and comm may hold anything.
		_, rest, _ := bytes.Cut(b[bytes.LastIndexByte(b, ')')+1:], []byte(" "))
		if f := bytes.Fields(rest); len(f) > 1 && string(f[1]) == strconv.Itoa(parent) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
				list = append(list, pid)
			}
		}
	}
	return list
}
