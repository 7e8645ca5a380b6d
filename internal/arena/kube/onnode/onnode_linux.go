// Package onnode lets this program, in a privileged pod that shares its node's
// processes, act in the node's own mount namespace: see its files and start
// its programs. It changes nothing there by itself. Next: package node of the
// installer, and cli's `agent on-node`, for what is done there.
package onnode

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Do calls do in the mount namespace of the node, on a thread of its own. The
// pod shares the node's process ids, so one of its ancestors, the runtime's
// shim, runs in it; process 1 would not do, as a node may itself be a container.
func Do(do func() error) error {
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

// environment is that of programs on the node; the image's means nothing there.
var environment = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C"}

// Exec makes of this process this very program with those arguments, in the
// node's mount namespace, as which it starts the node's programs, too. It
// returns only errors. The kernel keeps the namespaces of the thread that asks.
func Exec(args ...string) error {
	// The image's file, which the node does not have. The node's /proc shows
	// the descriptor, since it counts processes as the pod does.
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close()
	return Do(func() error {
		err := unix.Exec(fmt.Sprintf("/proc/self/fd/%d", self.Fd()), append([]string{os.Args[0]}, args...), environment)
		return fmt.Errorf("start this program on the node: %w", err)
	})
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
