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

// Exit codes of a shell.
const (
	codeCannotRun = 126
	codeNotFound  = 127
)

// stopPatience is how long a command may take to end when the other side of
// its pair has ended.
const stopPatience = 10 * time.Second

// earlyMarks are the times after the command's start of two additional snapshots. Means of
// gauges need two snapshots while the command runs, and a command may be short.
var earlyMarks = []time.Duration{50 * time.Millisecond, 250 * time.Millisecond}

// command is the command that is recorded, and after run also how it ended.
type command struct {
	argv           []string
	stdin          io.Reader
	stdout, stderr io.Writer
	log            *slog.Logger
	mark           func() // takes a snapshot

	code      int
	err       error // why the command did not run
	stopped   bool  // the other side stopped the command
	peerLost  error // why the connection to the other side broke while the command ran
	peerEnded bool  // the other side's command has ended by itself
	faults    []string
	notes     []string

	process      host.LocalProcess
	group        bool // the command has a process group of its own
	started      time.Time
	killAt       <-chan time.Time
	user, system time.Duration // CPU time
}

// run starts the command, tells the peer, and waits for the command's end. It forwards
// signals to the command. If the end is shared, the peer's end ends the command.
func (c *command) run(ctx context.Context, signals *signals, peer *peer) {
	ctx, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	// A command that ends with the client's gets a process group of its own, so that all
	// its processes can be ended. Other commands stay in the terminal's foreground group.
	start := host.Foreground
	if c.group = peer.endsCommand(); c.group {
		start = host.Local{}.Start
	}
	process, err := start(ctx, host.Command{Argv: c.argv, Stdin: c.stdin, Stdout: c.stdout, Stderr: c.stderr})
	if err != nil {
		c.code, c.err = startFailure(c.argv[0], err)
		peer.tellFailed(c.err)
		return
	}
	c.process, c.started = process.(host.LocalProcess), time.Now()
	peer.tellRunning(c.log)
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	marks := earlyMarks
	mark := time.NewTimer(marks[0])
	defer mark.Stop()
	messages := peer.receive()
	for {
		select {
		case err := <-ended:
			c.user, c.system = c.process.CPU()
			select {
			case m, ok := <-messages: // a message that arrived just before the end
				c.handle(peer, m, ok)
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
			if c.group || !fromTerminal(s) { // otherwise the terminal has sent the signal to the command, too
				c.forward(s)
			}
		case m, ok := <-messages:
			messages = nil
			c.handle(peer, m, ok)
		case <-c.killAt:
			c.log.Warn(fmt.Sprintf("%s did not end within %v after the signal %v and is killed", c.argv[0], stopPatience, stopSignal()))
			c.stopped = false
			kill()
		}
	}
}

// handle handles the peer's last message or, if ok is false, the loss of the connection.
func (c *command) handle(peer *peer, m message, ok bool) {
	other, at := peer.own.other(), time.Since(c.started).Seconds()
	switch {
	case ok && m.Op == opStop:
		c.stopped = true
	case ok && m.Op == opEnded && m.Code == 0:
		c.peerEnded = true
		c.notes = append(c.notes, fmt.Sprintf("the %s's command ended at +%.1f s", other, at))
		return
	case ok && m.Op == opEnded:
		c.peerEnded = true
		text := fmt.Sprintf("the %s's command ended at +%.1f s with exit code %d", other, at, m.Code)
		c.faults = append(c.faults, text)
		c.log.Warn(text)
		return
	case ok:
		return
	default:
		c.peerLost = fmt.Errorf("the %s was lost at +%.1f s", other, at)
		if !errors.Is(peer.hangUp, io.EOF) {
			c.peerLost = fmt.Errorf("%w: %w", c.peerLost, peer.hangUp)
		}
		c.faults = append(c.faults, c.peerLost.Error())
		c.log.Warn(c.peerLost.Error())
	}
	if peer.own == serverSide { // a server's command does not end by itself
		c.forward(stopSignal())
		c.killAt = time.After(stopPatience)
	}
}

// stopSignal returns the signal that ends a command as Ctrl-C does. Background children
// of a shell ignore SIGINT; sweep ends them.
func stopSignal() os.Signal {
	if signal.Ignored(os.Interrupt) {
		return syscall.SIGTERM
	}
	return os.Interrupt
}

// forward sends the signal to the command; if the command has a process group of its own,
// to all of the group.
func (c *command) forward(s os.Signal) {
	var err error
	if number, ok := s.(syscall.Signal); ok && c.group {
		if err = syscall.Kill(-c.process.PID(), number); errors.Is(err, syscall.ESRCH) {
			return
		}
	} else {
		err = c.process.Signal(s)
	}
	if err != nil {
		c.log.Warn(fmt.Sprintf("signal %v could not be sent to %s: %v", s, c.argv[0], err))
	}
}

// end sets the exit code. It is 0 for a command that the other side stopped.
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

// startFailure returns the shell's exit code for a command that did not start, and the
// reason.
func startFailure(program string, err error) (int, error) {
	var missing *host.ProgramError
	if !errors.As(err, &missing) {
		// The program was found, but is a folder, has an unknown format, or lacks its interpreter.
		if errors.Is(err, syscall.ENOEXEC) {
			err = fmt.Errorf("%w; if %s is a script, its first line should be #! and its interpreter", err, program)
		}
		return codeCannotRun, err
	}
	if path, found := onPath(program); found {
		return codeCannotRun, fmt.Errorf("%s: %w; see its permissions: ls -l %s", program, fs.ErrPermission, path)
	}
	return codeNotFound, err
}

// onPath finds the file that a shell would try to execute, whether it is executable or not.
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
