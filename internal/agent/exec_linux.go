package agent

import (
	"errors"
	"os"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of every descendant that becomes an orphan,
// in whatever session, so that endDescendants finds it.
func adoptOrphans() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // since Linux 3.4
}

// endDescendants kills the processes that the command has left behind and collects their
// exit status. The command itself must have been waited for. After a second it gives up: a process that
// hangs in the kernel ends with the pod.
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

// children returns the PIDs of the parent's children, but for those of Hold, which take
// back what is tried and then end by themselves.
func children(parent int) []int {
	var list []int
	processes, _ := procfs.AllProcs()
	for _, p := range processes {
		if stat, err := p.Stat(); err == nil && stat.PPID == parent && stat.Comm != holderName { // a process may have ended
			list = append(list, p.PID)
		}
	}
	return list
}
