package lab

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/linux"
)

// killInside kills every process in the network namespaces, orphans too, and
// returns when none is left. The error names those that do not end.
func killInside(boxes []*linux.NetNS) error {
	inside := map[uint64]bool{} // by inode number of the namespace
	for _, box := range boxes {
		var st unix.Stat_t
		if err := unix.Fstat(box.FD(), &st); err != nil {
			return err
		}
		inside[st.Ino] = true
	}
	// A process that is being killed may just have started another one.
	for deadline := time.Now().Add(downPatience); ; time.Sleep(time.Millisecond) {
		pids, err := processesIn(inside)
		if err != nil || len(pids) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v do not end within %v", pids, downPatience)
		}
		for _, pid := range pids {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
	}
}

// processesIn lists the processes, but this one, in the network namespaces with
// those inode numbers. A zombie has left its namespaces.
func processesIn(namespaces map[uint64]bool) ([]int, error) {
	processes, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, p := range processes {
		var st unix.Stat_t
		if err := unix.Stat(fmt.Sprintf("/proc/%d/ns/net", p.PID), &st); err != nil {
			continue // the process has ended
		}
		if p.PID != os.Getpid() && namespaces[st.Ino] {
			pids = append(pids, p.PID)
		}
	}
	return pids, nil
}
