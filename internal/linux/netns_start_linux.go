package linux

import (
	"fmt"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// Start starts the command inside the namespace, bound to the CPUs if any are
// given. The child inherits both from the thread that starts it.
func (n *NetNS) Start(cmd *exec.Cmd, cpus []int) error {
	return n.Do(func() error {
		if len(cpus) == 0 {
			return cmd.Start()
		}
		var old, set unix.CPUSet
		if err := unix.SchedGetaffinity(0, &old); err != nil {
			return err
		}
		for _, cpu := range cpus {
			set.Set(cpu)
		}
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fmt.Errorf("bind to CPUs %v: %w", cpus, err)
		}
		err := cmd.Start()
		if restoreErr := unix.SchedSetaffinity(0, &old); restoreErr != nil {
			runtime.LockOSThread() // never unlocked: the thread, whose CPUs are wrong, ends with its goroutine
		}
		return err
	})
}
