package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/ns"
)

// killInside kills every process in one of the network namespaces, those
// included whose parents have ended, and returns when there is none.
func killInside(boxes []*ns.NS) error {
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
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		info, err := os.Stat(filepath.Join(dir, "ns/net"))
		if err != nil {
			continue // it has ended
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && namespaces[st.Ino] {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
