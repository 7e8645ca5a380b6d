package agent

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// orphanPoll is how often Idle looks for orphans.
const orphanPoll = 2 * time.Second

// Idle is the life of a pod's first process. Every command in the pod is a
// descendant of a ServeExec, which adopts what loses its parent: a process
// that becomes a child of Idle has lost its ServeExec, and is killed. Idle
// ends with ctx or on SIGTERM, which the kernel would ignore for a first
// process that does not ask for it.
func Idle(ctx context.Context) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	look := time.NewTicker(orphanPoll)
	defer look.Stop()
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
