package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
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

// command is what is recorded, and after run how it ended.
type command struct {
	argv           []string
	stdin          io.Reader
	stdout, stderr io.Writer
	log            *slog.Logger

	code    int
	err     error // it did not run
	stopped bool  // by the other side
}

// run starts the command, tells the peer, and waits for its end: signals are
// passed on to it, and the peer's end ends it.
func (c *command) run(ctx context.Context, signals *signals, peer *peer) {
	ctx, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	// A server that ends with its client is a process group of its own, so
	// that all of it can be ended; other commands share the terminal with us.
	start := host.Foreground
	if peer.stops() {
		start = host.Local{}.Start
	}
	process, err := start(ctx, host.Command{Argv: c.argv, Stdin: c.stdin, Stdout: c.stdout, Stderr: c.stderr})
	if err != nil {
		c.code, c.err = whyNot(c.argv[0], err)
		peer.failed(c.err)
		return
	}
	peer.running(c.log)
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	var later, killAt <-chan time.Time
	var held os.Signal
	stop := peer.stopped()
	for {
		select {
		case err := <-ended:
			c.end(err)
			return
		case s := <-signals.c:
			if signals.fromTerminal(s) && !peer.stops() {
				held, later = s, time.After(terminalPatience)
				continue
			}
			c.pass(process, s)
		case <-later:
			c.pass(process, held)
		case <-stop:
			stop = nil
			c.stopped = true
			c.pass(process, os.Interrupt)
			killAt = time.After(stopPatience)
		case <-killAt:
			c.log.Warn(fmt.Sprintf("%s did not end within %v of its SIGINT and is killed", c.argv[0], stopPatience))
			c.stopped = false
			kill()
		}
	}
}

func (c *command) pass(p host.Process, s os.Signal) {
	if err := p.Signal(s); err != nil {
		c.log.Warn(fmt.Sprintf("%v could not be passed on to %s: %v", s, c.argv[0], err))
	}
}

// end notes the exit code. A command that the other side's end has stopped did
// what it should.
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

// whyNot is the shell's code for a command that did not start, and the reason.
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
