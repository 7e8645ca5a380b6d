package agent

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// orphanPoll is how often Idle looks for orphans.
const orphanPoll = 2 * time.Second

// abandoned is how long a pod outlives its last command. A run starts commands
// in each of its pods all the time; a pod without any is of a run that was killed.
const abandoned = time.Hour

// Idle is the life of a pod's first process. Every command in the pod is a
// descendant of a ServeExec, which adopts what loses its parent: a process
// that becomes a child of Idle has lost its ServeExec, and is killed. Idle
// ends with ctx, when the pod is abandoned, or on SIGTERM, which the kernel would
// ignore for a first process that does not ask for it.
func Idle(ctx context.Context) { idle(ctx, orphanPoll, abandoned, busy) }

func idle(ctx context.Context, poll, abandoned time.Duration, busy func() bool) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	look := time.NewTicker(poll)
	defer look.Stop()
	last := time.Now() // that a command was seen
	for {
		reap()
		select {
		case <-ctx.Done():
			return
		case <-ended:
		case <-look.C:
			for _, child := range children(os.Getpid()) {
				_ = syscall.Kill(child, syscall.SIGKILL) // it may have ended
			}
			if busy() {
				last = time.Now()
			}
			if time.Since(last) > abandoned {
				return
			}
		}
	}
}

// reap takes the exit status of every child that has ended; this process
// starts none of its own.
func reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
	}
}

// busy reports whether there is any other process in the pod. In a pod with the
// node's processes there always is: its deadline ends it.
func busy() bool {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return true
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid != os.Getpid() {
			return true
		}
	}
	return false
}
