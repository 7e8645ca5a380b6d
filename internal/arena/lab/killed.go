package lab

import "time"

// SameRequest is the time within which several signals are one request to end:
// timeout and supervisors send theirs to the process and to its group.
const SameRequest = time.Second

// Killed is the error of a lab that a signal has ended. The kernel has taken
// back everything that was in the lab.
type Killed struct {
	Signal string // SIGKILL
	Asked  bool   // by a second request to end, after which the lab is not waited for
}

func (e *Killed) Error() string {
	switch {
	case e.Asked:
		return "interrupted twice: the lab was not waited for"
	case e.Signal == "SIGKILL":
		return "the lab was killed by SIGKILL, which the kernel sends too when memory runs out (dmesg says so)"
	}
	return "the lab was killed by " + e.Signal
}
