//go:build !linux

package lab

// Running is a lab on this machine; Linux only.
type Running struct {
	Init, Launcher int
	Endpoints      map[string]int
}

// FindRunning says that this is not Linux.
func FindRunning() ([]Running, error) { return nil, errNotLinux }

// Orphaned is false where there are no labs.
func (r *Running) Orphaned() bool { return false }

// Kill says that this is not Linux.
func (r *Running) Kill() error { return errNotLinux }
