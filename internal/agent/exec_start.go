package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/host"
)

const (
	execStartTimeout = 30 * time.Second // from opening the stream until the command runs
	execKillTimeout  = 5 * time.Second  // from the kill until the exit is reported
	execAlive        = 15 * time.Second // between signs of life, well below execSilence
)

// Stream runs `EXE agent exec` at the endpoint and carries its standard input
// and output until it ends; the text on its standard error is that of whoever
// failed to start it. It returns when ctx ends.
type Stream func(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error

// ErrStream says that the stream to a command broke, and with it the command.
var ErrStream = errors.New("the stream to the command broke")

// StartOver starts the command through a stream and returns when it runs. The
// command is killed when ctx ends. Errors: *host.ProgramError where the
// program is missing, ErrStream with the cause where no stream came about.
func StartOver(ctx context.Context, open Stream, c host.Command) (host.Process, error) {
	stdin, in := io.Pipe()
	out, stdout := io.Pipe()
	p := &streamed{
		line: c.String(), frames: &frames{w: in}, exited: make(chan struct{}), closed: make(chan struct{}),
		stdout: c.Stdout, stderr: c.Stderr,
	}
	// The stream outlives ctx, to bring the kill to the command and its exit back.
	var streamCtx context.Context
	streamCtx, p.cut = context.WithCancel(context.WithoutCancel(ctx))
	said := &lastWords{}
	go func() {
		defer close(p.closed)
		p.streamErr = open(streamCtx, stdin, stdout, said)
		stdin.CloseWithError(io.ErrClosedPipe) // our writes fail from now on
		_ = stdout.Close()                     // never fails
	}()
	order := execOrder{Argv: c.Argv, Env: c.Env, Stdin: c.Stdin != nil, Stdout: c.Stdout != nil, Stderr: c.Stderr != nil}
	ordered := make(chan error, 1)
	go func() { ordered <- p.frames.sendJSON(frameOrder, order) }()
	r := bufio.NewReader(out)
	first := make(chan error, 1)
	go func() { first <- p.first(r) }()

	patience := time.NewTimer(execStartTimeout)
	defer patience.Stop()
	var err error
	select {
	case err = <-first:
	case <-ctx.Done():
		err = ctx.Err()
	case <-patience.C:
		err = fmt.Errorf("%w: nothing came within %v", ErrStream, execStartTimeout)
	}
	if err == nil {
		err = <-ordered
	}
	if err != nil {
		p.cut()
		out.CloseWithError(io.ErrClosedPipe)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) {
			<-p.closed
			err = broken(p.streamErr, said.String())
		}
		return nil, err
	}
	go p.receive(r, out, said)
	if c.Stdin != nil {
		go p.feed(c.Stdin)
	}
	go p.tend(ctx)
	return p, nil
}

// broken is ErrStream with its cause.
func broken(cause error, said string) error {
	switch {
	case cause != nil && said != "":
		return fmt.Errorf("%w: %w: %s", ErrStream, cause, said)
	case cause != nil:
		return fmt.Errorf("%w: %w", ErrStream, cause)
	case said != "":
		return fmt.Errorf("%w: %s", ErrStream, said)
	}
	return ErrStream
}

// streamed is a command at the other end of a stream.
type streamed struct {
	line           string
	frames         *frames
	cut            context.CancelFunc
	stdout, stderr io.Writer

	closed    chan struct{} // the stream has ended
	streamErr error         // then
	exited    chan struct{} // nothing more will come
	err       error         // then
}

// first waits until the command runs.
func (p *streamed) first(r io.Reader) error {
	kind, b, err := readFrame(r)
	switch {
	case err != nil:
		return err
	case kind == frameStarted:
		return nil
	case kind == frameRefused:
		var refusal execRefusal
		if err := json.Unmarshal(b, &refusal); err != nil {
			return err
		}
		return refusal.err()
	}
	return fmt.Errorf("the endpoint answers with a frame %q: it runs another version of cnibench", kind)
}

// receive takes what the command writes and, last, how it ended.
func (p *streamed) receive(r io.Reader, out *io.PipeReader, said *lastWords) {
	defer close(p.exited)
	for {
		kind, b, err := readFrame(r)
		if err != nil {
			p.cut()
			out.CloseWithError(io.ErrClosedPipe)
			<-p.closed
			p.err = broken(p.streamErr, said.String())
			return
		}
		switch kind {
		case frameOutput:
			p.pass(p.stdout, b)
		case frameError:
			p.pass(p.stderr, b)
		case frameExit:
			if p.err == nil {
				p.err = p.exit(b)
			}
			go p.linger(r)
			return
		}
	}
}

// linger lets the stream of a command that has ended come to its own end.
func (p *streamed) linger(r io.Reader) {
	defer p.cut()
	go func() { _, _ = io.Copy(io.Discard, r) }()
	select {
	case <-p.closed:
	case <-time.After(execKillTimeout):
	}
}

// pass hands output on. A writer that fails breaks the command's pipe in a
// shell; here it ends the command.
func (p *streamed) pass(w io.Writer, b []byte) {
	if w == nil || p.err != nil {
		return
	}
	if _, err := w.Write(b); err != nil {
		p.err = fmt.Errorf("%s: its output: %w", p.line, err)
		p.kill()
	}
}

func (p *streamed) exit(b []byte) error {
	var exit execExit
	if err := json.Unmarshal(b, &exit); err != nil {
		return fmt.Errorf("%s: its exit: %w", p.line, err)
	}
	switch {
	case exit.Text != "":
		return fmt.Errorf("%s: %s", p.line, exit.Text)
	case exit.Code != 0:
		return &host.ExitError{Command: p.line, Code: exit.Code, Stderr: exit.Stderr}
	}
	return nil
}

// feed sends the command its standard input.
func (p *streamed) feed(from io.Reader) {
	if _, err := io.Copy(p.frames.writer(frameInput), from); err == nil {
		_ = p.frames.send(frameEnd, nil) // a broken stream shows elsewhere
	}
}

// tend shows signs of life, and kills the command when ctx ends.
func (p *streamed) tend(ctx context.Context) {
	tick := time.NewTicker(execAlive)
	defer tick.Stop()
	for {
		select {
		case <-p.exited:
			return
		case <-tick.C:
			_ = p.frames.send(frameAlive, nil)
		case <-ctx.Done():
			p.kill()
			return
		}
	}
}

// kill kills the command; where its exit is not reported in time, the stream
// is cut, whose end kills it too.
func (p *streamed) kill() {
	go func() { _ = p.frames.send(frameSignal, []byte(unix.SignalName(syscall.SIGKILL))) }()
	time.AfterFunc(execKillTimeout, p.cut)
}

// Wait implements host.Process.
func (p *streamed) Wait() error {
	<-p.exited
	return p.err
}

// Signal implements host.Process.
func (p *streamed) Signal(s os.Signal) error {
	select {
	case <-p.exited:
		return nil
	default:
	}
	number, ok := s.(syscall.Signal)
	name := unix.SignalName(number)
	if !ok || name == "" {
		return fmt.Errorf("signal %v: it has no name to be sent by", s)
	}
	if number == syscall.SIGKILL {
		p.kill()
		return nil
	}
	sent := make(chan error, 1)
	go func() { sent <- p.frames.send(frameSignal, []byte(name)) }()
	select {
	case err := <-sent:
		if errors.Is(err, io.ErrClosedPipe) {
			return nil // it ended in this moment
		}
		return err
	case <-p.exited:
		return nil
	case <-time.After(execKillTimeout):
		return fmt.Errorf("signal %v: %w", s, ErrStream)
	}
}

// lastWords keeps the beginning of what was written to it.
type lastWords struct {
	mu sync.Mutex
	b  []byte
}

func (l *lastWords) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if room := 1<<10 - len(l.b); room > 0 {
		l.b = append(l.b, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

func (l *lastWords) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(bytes.TrimSpace(l.b))
}
