package node

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// inNode runs do in the mount namespace of the node. The pod shares the
// node's process ids, so one of its ancestors, the runtime's shim, runs in it;
// process 1 would not do, as a node may itself be a container.
func inNode(inPlace bool, do func() error) error {
	if inPlace {
		return do()
	}
	ns, err := nodeMounts()
	if err != nil {
		return err
	}
	defer ns.Close()
	result := make(chan error, 1)
	go func() {
		// Never unlocked: the thread is spoilt for others and ends with this function.
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			result <- fmt.Errorf("unshare: %w", err)
			return
		}
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNS); err != nil {
			result <- fmt.Errorf("enter the node's mount namespace: %w; the pod must be privileged", err)
			return
		}
		result <- do()
	}()
	return <-result
}

// nodeMounts opens the mount namespace of the nearest ancestor that has
// another one than this process.
func nodeMounts() (*os.File, error) {
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return nil, fmt.Errorf("mount namespace: %w", err)
	}
	for pid := os.Getppid(); pid > 0; {
		path := "/proc/" + strconv.Itoa(pid) + "/ns/mnt"
		ns, err := os.Readlink(path)
		if err != nil {
			return nil, fmt.Errorf("mount namespace of process %d: %w", pid, err)
		}
		if ns != own {
			return os.Open(path)
		}
		if pid, err = parent(pid); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("no process above this one is in the node's mount namespace; the pod must have hostPID")
}

// parent is the process above, by /proc/PID/stat: its fourth field, counted
// behind the name in brackets.
func parent(pid int) (int, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, fmt.Errorf("parent of process %d: %w", pid, err)
	}
	_, rest, ok := strings.Cut(string(data[strings.LastIndexByte(string(data), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 2 {
		return 0, fmt.Errorf("parent of process %d: unexpected /proc/%d/stat", pid, pid)
	}
	return strconv.Atoi(fields[1])
}
