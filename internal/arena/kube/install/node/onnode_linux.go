package node

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// onNode calls do in the mount namespace of the node, on a thread of its own: do can read
// the node's files and start its programs. The pod must be privileged; it sees
// the node's processes: its ancestor, the container runtime's shim, runs in the node's
// mount namespace. Process 1 may not, as a node can itself be a container.
func onNode(do func() error) error {
	ns, err := nodeMounts()
	if err != nil {
		return err
	}
	defer ns.Close()
	result := make(chan error, 1)
	go func() {
		// Never unlocked: the thread, with its other namespace, ends with this function.
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

// nodeEnvironment is for programs on the node, where the image's nodeEnvironment is wrong.
var nodeEnvironment = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C"}

// Exec replaces this process by this program with those arguments, in the node's mount
// namespace. It returns only with an error. The kernel keeps the namespaces of the thread
// that calls exec.
func Exec(args ...string) error {
	// The node does not have the image's file, but its /proc shows the descriptor: node
	// and pod number processes alike.
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close()
	return onNode(func() error {
		err := unix.Exec(fmt.Sprintf("/proc/self/fd/%d", self.Fd()), append([]string{os.Args[0]}, args...), nodeEnvironment)
		return fmt.Errorf("start this program on the node: %w", err)
	})
}

// nodeMounts opens the mount namespace of the nearest ancestor whose mount namespace
// differs from this process'.
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
		if pid, err = parentOf(pid); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("no process above this one is in the node's mount namespace; the pod must have hostPID")
}

// parentOf returns the PID of the parent process.
func parentOf(pid int) (int, error) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return 0, fmt.Errorf("parent of process %d: %w", pid, err)
	}
	stat, err := proc.Stat()
	return stat.PPID, err
}
