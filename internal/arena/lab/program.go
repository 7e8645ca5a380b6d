package lab

import (
	"io"
	"os"
	"time"
)

// Program is how this program is started as the init of a lab.
type Program struct {
	Args   []string
	Stdin  io.Reader // nil: empty
	Stdout io.Writer // nil: thrown away
	// HostNetwork leaves the lab in this process's network namespace: for a guest, of whose
	// network devices the lab makes use. Drivers make these in the first namespace.
	HostNetwork bool
	// Files are open files that the inner program inherits: see Inherited.
	Files []*os.File
}

// SameRequest is the time within which several signals count as one request to
// end: timeout(1) and supervisors signal both the process and its group.
const SameRequest = time.Second

// Killed is the error of a lab that a signal has ended. The kernel has taken
// back everything that was in the lab.
type Killed struct {
	Signal     string // its name, e.g. SIGKILL
	AskedTwice bool   // the signal was sent because of a second request to end
}

func (e *Killed) Error() string {
	switch {
	case e.AskedTwice:
		return "interrupted twice: the lab was not waited for"
	case e.Signal == "SIGKILL":
		return "the lab was killed by SIGKILL, which the kernel sends too when memory runs out (dmesg says so)"
	}
	return "the lab was killed by " + e.Signal
}
