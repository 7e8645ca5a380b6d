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
const orphanPoll = 2 * time.Second

// Sign is the file in a pod by which the pod's run says that it is under way. Renew
// replaces it.
const Sign = "/run/cnibench/renewed"

// How long a pod waits for its run: for the first sign, while the run still waits
// for its other pods, and for the next one.
const (
	firstSign = 10 * time.Minute
	nextSign  = 90 * time.Second
)

// ErrAbandoned says that the run of a pod gave no sign any more.
var ErrAbandoned = errors.New("the run gave no sign")

// Idle is the life of a pod's first process. Every command in the pod is a
// descendant of a ServeExec, which adopts what loses its parent: a process
// that becomes a child of Idle has lost its ServeExec, and is killed. Idle
// ends with ctx, with ErrAbandoned, or on SIGTERM, which the kernel would ignore
// for a first process that does not ask for it.
func Idle(ctx context.Context) error {
	return idle(ctx, patience{orphanPoll, firstSign, nextSign}, func() string {
		text, _ := os.ReadFile(Sign) // there is none before the first
		return string(text)
	})
}

// patience is how often idle looks, and how long it waits for signs.
type patience struct{ poll, first, next time.Duration }

func idle(ctx context.Context, p patience, sign func() string) error {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	look := time.NewTicker(p.poll)
	defer look.Stop()
	last, since, left := "", time.Now(), p.first // a monotonic clock: nobody sets it
	for {
		reap()
		select {
		case <-ctx.Done():
			return nil
		case <-ended:
		case <-look.C:
			for _, child := range children(os.Getpid()) {
				_ = syscall.Kill(child, syscall.SIGKILL) // it may have ended
			}
			if now := sign(); now != last {
				last, since, left = now, time.Now(), p.next
			}
			if time.Since(since) > left {
				return fmt.Errorf("%w for %v", ErrAbandoned, left)
			}
		}
	}
}

// Renew writes a new sign for each byte that it reads, until their end.
func Renew(r io.Reader, file string) error {
	one := make([]byte, 1)
	for {
		_, err := io.ReadFull(r, one)
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
