package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// orphanPoll is how often Idle looks for orphans.
const orphanPoll = time.Second

// Sign is the file in a pod that shows that the pod's run is under way: Renew replaces its
// content again and again.
const Sign = "/run/cnibench/renewed"

// Patience is how long a pod waits for the first sign of its run, and from one sign to the
// next. With orphanPoll it ends within half a minute of the last.
const Patience = 27 * time.Second

// ErrAbandoned says that the run of a pod gives no sign any more.
var ErrAbandoned = errors.New("the run gave no sign")

// Idle runs in a pod's first process. Every command in the pod is a descendant of a
// ServeExec, which adopts orphans among its descendants. A process that becomes a child
// of Idle has therefore lost its ServeExec, and Idle kills it. Idle returns nil when ctx
// ends or on SIGTERM, and ErrAbandoned.
func Idle(ctx context.Context) error {
	return idle(ctx, patience{orphanPoll, Patience, Patience}, func() string {
		text, _ := os.ReadFile(Sign) // no file before the first sign
		return string(text)
	})
}

// patience is how often idle looks for orphans and signs, and how long it waits for a sign.
type patience struct{ poll, first, next time.Duration }

func idle(ctx context.Context, p patience, sign func() string) error {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	poll := time.NewTicker(p.poll)
	defer poll.Stop()
	last, changed, limit := "", time.Now(), p.first
	for {
		reap()
		select {
		case <-ctx.Done():
			return nil
		case <-ended:
		case <-poll.C:
			for _, child := range children(os.Getpid()) {
				_ = syscall.Kill(child, syscall.SIGKILL) // fails if the child has ended
			}
			if text := sign(); text != last {
				last, changed, limit = text, time.Now(), p.next
			} else if time.Since(changed) > limit { // by the monotonic clock, which nobody sets
				return fmt.Errorf("%w for %v", ErrAbandoned, limit)
			}
		}
	}
}

// Renew writes a new sign into the file for each byte that it reads from r, until r ends.
func Renew(r io.Reader, file string) error {
	buffer := make([]byte, 1)
	for {
		_, err := io.ReadFull(r, buffer)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = os.WriteFile(file, []byte(rand.Text()), 0o600)
		}
		if err != nil {
			return err
		}
	}
}

// reap collects the exit status of every child that has ended. All children are adopted
// ones: this process starts none.
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
