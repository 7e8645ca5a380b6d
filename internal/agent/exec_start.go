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

	"github.com/cnibench/cnibench/internal/frame"
	"github.com/cnibench/cnibench/internal/host"
)

const (
	execStartTimeout = 30 * time.Second // from opening the stream until the command runs
	execKillTimeout  = 5 * time.Second  // from the kill until the exit is reported
	execAlive        = 15 * time.Second // between two frameAlive; far below execSilence
)

// Stream runs `EXE agent exec` at the endpoint and carries its standard input and output
// until it ends or ctx ends. To stderr go the messages of programs that failed to start it.
type Stream func(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error

// ErrStream says that the stream to a command broke, so that the command was killed.
var ErrStream = errors.New("the stream to the command broke")

// StartExec starts the command through a stream and returns when it runs. The command is
// killed when ctx ends. Errors: *host.ProgramError if the program is missing, ErrStream
// with the cause if the stream could not be opened.
func StartExec(ctx context.Context, open Stream, c host.Command) (host.Process, error) {
	stdin, in := io.Pipe()
	out, stdout := io.Pipe()
	p := &streamed{
		line: c.String(), frames: frame.NewWriter(in), exited: make(chan struct{}), closed: make(chan struct{}),
		stdout: c.Stdout, stderr: c.Stderr,
	}
	// The stream outlives ctx: it still carries the kill, and the exit back.
	var streamCtx context.Context
	streamCtx, p.cut = context.WithCancel(context.WithoutCancel(ctx))
	messages := &headBuffer{}
	go func() {
		defer close(p.closed)
		p.streamErr = open(streamCtx, stdin, stdout, messages)
		stdin.CloseWithError(io.ErrClosedPipe) // our writes fail from now on
		_ = stdout.Close()                     // never fails
	}()
	order := execOrder{Argv: c.Argv, Env: c.Env, Stdin: c.Stdin != nil, Stdout: c.Stdout != nil, Stderr: c.Stderr != nil}
	ordered := make(chan error, 1)
	go func() { ordered <- sendJSON(p.frames, frameOrder, order) }()
	r := bufio.NewReader(out)
	started := make(chan error, 1)
	go func() { started <- p.awaitStart(r) }()

	patience := time.NewTimer(execStartTimeout)
	defer patience.Stop()
	var err error
	select {
	case err = <-started:
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
			err = wrapStreamError(p.streamErr, messages.String())
		}
		return nil, err
	}
	go p.receive(r, out, messages)
	if c.Stdin != nil {
		go p.feed(c.Stdin)
	}
	go p.keepAlive(ctx)
	return p, nil
}

// wrapStreamError returns ErrStream with its cause and the messages of the stream.
func wrapStreamError(cause error, messages string) error {
	err := ErrStream
	if cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	if messages != "" {
		err = fmt.Errorf("%w: %s", err, messages)
	}
	return err
}

// streamed is a command at the other end of a stream.
type streamed struct {
	line           string
	frames         *frame.Writer
	cut            context.CancelFunc // ends the stream
	stdout, stderr io.Writer

	closed    chan struct{} // closed when the stream has ended
	streamErr error         // set once closed is closed
	exited    chan struct{} // closed when the command has ended and all its output was written
	err       error         // set once exited is closed
}

// awaitStart waits until the command runs.
func (p *streamed) awaitStart(r io.Reader) error {
	kind, b, err := frame.Read(r)
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
	return fmt.Errorf("the endpoint answers with a frame %q: it runs another version of cnibench; use an image of this version", kind)
}

// receive receives the command's output and its exit.
func (p *streamed) receive(r io.Reader, out *io.PipeReader, messages *headBuffer) {
	defer close(p.exited)
	for {
		kind, b, err := frame.Read(r)
		if err != nil {
			p.cut()
			out.CloseWithError(io.ErrClosedPipe)
			<-p.closed
			p.err = wrapStreamError(p.streamErr, messages.String())
			return
		}
		switch kind {
		case frameOutput:
			p.write(p.stdout, b)
		case frameError:
			p.write(p.stderr, b)
		case frameExit:
			if p.err == nil {
				p.err = p.exit(b)
			}
			go p.awaitClose(r)
			return
		}
	}
}

// awaitClose waits until the stream of a command that has ended closes, and cuts it after
// execKillTimeout.
func (p *streamed) awaitClose(r io.Reader) {
	defer p.cut()
	go func() { _, _ = io.Copy(io.Discard, r) }()
	select {
	case <-p.closed:
	case <-time.After(execKillTimeout):
	}
}

// write writes output to the caller's writer. If that fails, it kills the command, as a
// broken pipe does in a shell.
func (p *streamed) write(w io.Writer, b []byte) {
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
	if _, err := io.Copy(p.frames.Stream(frameInput), from); err == nil {
		_ = p.frames.Send(frameEnd, nil) // receive reports a broken stream
	}
}

// keepAlive sends frameAlive at intervals, and kills the command when ctx ends.
func (p *streamed) keepAlive(ctx context.Context) {
	tick := time.NewTicker(execAlive)
	defer tick.Stop()
	for {
		select {
		case <-p.exited:
			return
		case <-tick.C:
			_ = p.frames.Send(frameAlive, nil)
		case <-ctx.Done():
			p.kill()
			return
		}
	}
}

// kill kills the command. If the exit is not reported in time, kill cuts the stream, whose
// end kills the command, too.
func (p *streamed) kill() {
	go func() { _ = p.frames.Send(frameSignal, []byte(unix.SignalName(syscall.SIGKILL))) }()
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
		return fmt.Errorf("signal %v: it has no name and can't be sent", s)
	}
	if number == syscall.SIGKILL {
		p.kill()
		return nil
	}
	sent := make(chan error, 1)
	go func() { sent <- p.frames.Send(frameSignal, []byte(name)) }()
	select {
	case err := <-sent:
		if errors.Is(err, io.ErrClosedPipe) {
			return nil // the command has just ended
		}
		return err
	case <-p.exited:
		return nil
	case <-time.After(execKillTimeout):
		return fmt.Errorf("signal %v: %w", s, ErrStream)
	}
}

// headBuffer keeps the first KiB that is written to it.
type headBuffer struct {
	mu sync.Mutex
	b  []byte
}

func (h *headBuffer) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if room := 1<<10 - len(h.b); room > 0 {
		h.b = append(h.b, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

func (h *headBuffer) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(bytes.TrimSpace(h.b))
}
