package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/host"
)

// The codes of a shell.
const (
	codeCannotRun = 126
	codeNotFound  = 127
)

// stopPatience is how long a command may take to end when the other side of
// its pair has ended.
const stopPatience = 10 * time.Second

// earlyMarks are snapshots after the command's start: means of gauges are from
// the first snapshot in the command's life to the last.
var earlyMarks = []time.Duration{50 * time.Millisecond, 250 * time.Millisecond}

// command is what is recorded, and after run how it ended.
type command struct {
	argv           []string
	stdin          io.Reader
	stdout, stderr io.Writer
	log            *slog.Logger
	mark           func() // takes a snapshot

	code    int
	err     error // it did not run
	stopped bool  // by the other side
	lost    error // the other side was, while it ran
	alone   bool  // the other side's command has ended by itself
	faults  []string
	notes   []string

	process      host.LocalProcess
	group        bool // it has a process group of its own
	started      time.Time
	killAt       <-chan time.Time
	user, system time.Duration // CPU time
}

// run starts the command, tells the peer, and waits for its end: signals are
// passed on to it, and the peer's end ends it.
func (c *command) run(ctx context.Context, signals *signals, peer *peer) {
	ctx, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	// A server that ends with its client is a process group of its own, so
	// that all of it can be ended; other commands share the terminal with us.
	start := host.Foreground
	if c.group = peer.stops(); c.group {
		start = host.Local{}.Start
	}
	process, err := start(ctx, host.Command{Argv: c.argv, Stdin: c.stdin, Stdout: c.stdout, Stderr: c.stderr})
	if err != nil {
		c.code, c.err = whyNot(c.argv[0], err)
		peer.failed(c.err)
		return
	}
	c.process, c.started = process.(host.LocalProcess), time.Now()
	peer.running(c.log)
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	marks := earlyMarks
	mark := time.NewTimer(marks[0])
	defer mark.Stop()
	messages := peer.news()
	for {
		select {
		case err := <-ended:
			c.user, c.system = c.process.CPU()
			select {
			case m, ok := <-messages: // what came just before the end
				c.hear(peer, m, ok)
			default:
			}
			c.end(err)
			return
		case <-mark.C:
			c.mark()
			if marks = marks[1:]; len(marks) > 0 {
				mark.Reset(marks[0] - time.Since(c.started))
			}
		case s := <-signals.c:
			if c.group || !fromTerminal(s) { // else the command has got it too
				c.pass(s)
			}
		case m, ok := <-messages:
			messages = nil
			c.hear(peer, m, ok)
		case <-c.killAt:
			c.log.Warn(fmt.Sprintf("%s did not end within %v of its %v and is killed", c.argv[0], stopPatience, stopSignal()))
			c.stopped = false
			kill()
		}
	}
}

// hear acts on the peer's last message, or on the loss of its connection.
func (c *command) hear(peer *peer, m message, ok bool) {
	other, at := peer.own.other(), time.Since(c.started).Seconds()
	switch {
	case ok && m.Op == opStop:
		c.stopped = true
	case ok && m.Op == opEnded && m.Code == 0:
		c.alone = true
		c.notes = append(c.notes, fmt.Sprintf("the %s's command ended at +%.1f s", other, at))
		return
	case ok && m.Op == opEnded:
		c.alone = true
		text := fmt.Sprintf("the %s's command ended at +%.1f s with exit code %d", other, at, m.Code)
		c.faults = append(c.faults, text)
		c.log.Warn(text)
		return
	case ok:
		return
	default:
		c.lost = fmt.Errorf("the %s was lost at +%.1f s", other, at)
		if !errors.Is(peer.hangUp, io.EOF) {
			c.lost = fmt.Errorf("%w: %w", c.lost, peer.hangUp)
		}
		c.faults = append(c.faults, c.lost.Error())
		c.log.Warn(c.lost.Error())
	}
	if peer.own == serverSide { // nobody else would end it
		c.pass(stopSignal())
		c.killAt = time.After(stopPatience)
	}
}

// stopSignal ends a command as Ctrl-C does. Background children of a shell ignore it;
// sweep ends them.
func stopSignal() os.Signal {
	if signal.Ignored(os.Interrupt) {
		return syscall.SIGTERM
	}
	return os.Interrupt
}

// pass gives the signal to the command, to all of its group if it has one.
func (c *command) pass(s os.Signal) {
	var err error
	if number, ok := s.(syscall.Signal); ok && c.group {
		if err = syscall.Kill(-c.process.PID(), number); errors.Is(err, syscall.ESRCH) {
			return
		}
	} else {
		err = c.process.Signal(s)
	}
	if err != nil {
		c.log.Warn(fmt.Sprintf("%v could not be passed on to %s: %v", s, c.argv[0], err))
	}
}

// end notes the exit code: 0 for a command that was stopped because the other side
// ended.
func (c *command) end(err error) {
	var exit *host.ExitError
	switch {
	case c.stopped, err == nil:
		c.code = 0
	case errors.As(err, &exit):
		c.code = exit.Code
	default:
		c.code, c.err = 1, err
	}
}

// whyNot returns the shell's exit code for a command that did not start, and the reason.
func whyNot(program string, err error) (int, error) {
	var missing *host.ProgramError
	if !errors.As(err, &missing) {
		// It was found: a folder, an unknown format, a missing interpreter.
		if errors.Is(err, syscall.ENOEXEC) {
			err = fmt.Errorf("%w; if it is a script, its first line should be #! and its interpreter", err)
		}
		return codeCannotRun, err
	}
	if path, found := onPath(program); found {
		return codeCannotRun, fmt.Errorf("%s: %w; see its permissions: ls -l %s", program, fs.ErrPermission, path)
	}
	return codeNotFound, err
}

// onPath finds a file of that name that a shell would try, executable or not.
func onPath(program string) (string, bool) {
	folders := []string{""}
	if !strings.ContainsRune(program, filepath.Separator) {
		folders = filepath.SplitList(os.Getenv("PATH"))
	}
	for _, folder := range folders {
		path := filepath.Join(folder, program)
		if _, err := os.Stat(path); err == nil {
			return path, true
		}
	}
	return "", false
}
