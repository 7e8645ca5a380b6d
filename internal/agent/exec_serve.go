package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/frame"
	"github.com/cnibench/cnibench/internal/host"
)

// execSilence is how long the other side may send nothing before the command is killed: a
// connection can break unnoticed, and the load must not go on.
const execSilence = 90 * time.Second

// ServeExec reads an order from in, runs its command, and reports to out. The command has
// a process group of its own. ServeExec kills the command and all its descendants when in
// ends, when ctx ends, or after execSilence. The error is about the stream; a command that
// fails is no error.
func ServeExec(ctx context.Context, in io.Reader, out io.Writer) error {
	adoptOrphans()
	// Without this, a write to a broken stream would end this process before it has killed
	// the command.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return serveExec(ctx, in, out, execSilence, endDescendants)
}

// serveExec calls end after the command has ended and before it reports the exit.
func serveExec(ctx context.Context, in io.Reader, out io.Writer, silence time.Duration, end func()) error {
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	frames := frame.NewWriter(out)
	r := bufio.NewReader(in)
	kind, b, err := frame.Read(r)
	if err != nil {
		return fmt.Errorf("agent exec: no order came: %w", err)
	}
	var order execOrder
	if kind != frameOrder {
		return fmt.Errorf("agent exec: the first frame is %q, not an order", kind)
	}
	if err := decode(b, &order); err != nil {
		return fmt.Errorf("agent exec: the order: %w", err)
	}
	if len(order.Argv) == 0 {
		return errors.New("agent exec: the order has no program")
	}

	command := host.Command{Argv: order.Argv, Env: order.Env}
	input := &input{}
	if order.Stdin {
		stdin, w, err := os.Pipe() // of the system: each side notices at once when the other ends
		if err != nil {
			return fmt.Errorf("agent exec: %w", err)
		}
		defer stdin.Close()
		command.Stdin = stdin
		input.start(w)
		defer input.drop()
	}
	started := make(chan struct{}) // closed once frameStarted, which must come before all output, is sent
	if order.Stdout {
		command.Stdout = delayedWriter{started, frames.Stream(frameOutput)}
	}
	if order.Stderr {
		command.Stderr = delayedWriter{started, frames.Stream(frameError)}
	}
	p, err := host.Local{}.Start(ctx, command)
	if err != nil {
		refusal := execRefusal{Text: err.Error()}
		var missing *host.ProgramError
		if errors.As(err, &missing) {
			refusal = execRefusal{Program: missing.Program, Remedy: missing.Remedy}
		}
		return sendJSON(frames, frameRefused, refusal)
	}
	if f, ok := command.Stdin.(*os.File); ok {
		f.Close() // else our writes would not fail after the command has closed its copy
	}
	if err := frames.Send(frameStarted, nil); err != nil {
		kill()
	}
	close(started)
	timeout := time.AfterFunc(silence, kill)
	defer timeout.Stop()
	go func() {
		defer kill() // the stream has ended
		for {
			kind, b, err := frame.Read(r)
			if err != nil {
				return
			}
			timeout.Reset(silence)
			switch kind {
			case frameInput:
				input.add(b)
			case frameEnd:
				input.end()
			case frameSignal:
				if s := unix.SignalNum(string(b)); s == syscall.SIGKILL {
					kill()
				} else if s != 0 {
					_ = p.Signal(s) // fails if the command has ended
				}
			}
		}
	}()
	exit := exitOf(p.Wait())
	end()
	return sendJSON(frames, frameExit, exit)
}

// exitOf returns the error of Wait as a report.
func exitOf(err error) execExit {
	var exit *host.ExitError
	switch {
	case err == nil:
		return execExit{}
	case errors.As(err, &exit):
		return execExit{Code: exit.Code, Stderr: exit.Stderr}
	}
	return execExit{Text: err.Error()}
}

// delayedWriter writes to w once ready is closed.
type delayedWriter struct {
	ready <-chan struct{}
	w     io.Writer
}

func (d delayedWriter) Write(p []byte) (int, error) {
	<-d.ready
	return d.w.Write(p)
}

// input queues standard input for the command. add never blocks, so that a command that
// does not read its input still gets its signals.
type input struct {
	mu      sync.Mutex
	changed *sync.Cond // nil: the command has no standard input
	queue   [][]byte
	ended   bool
	writer  *os.File
}

// start writes the queue to w until the input ends, and closes w.
func (q *input) start(w *os.File) {
	q.changed, q.writer = sync.NewCond(&q.mu), w
	go func() {
		defer w.Close()
		for {
			q.mu.Lock()
			for len(q.queue) == 0 && !q.ended {
				q.changed.Wait()
			}
			next := q.queue
			q.queue = nil
			q.mu.Unlock()
			if len(next) == 0 {
				return
			}
			for _, b := range next {
				if _, err := w.Write(b); err != nil {
					return // the command reads no more
				}
			}
		}
	}()
}

func (q *input) add(b []byte) { q.change(func() { q.queue = append(q.queue, b) }) }

func (q *input) end() { q.change(func() { q.ended = true }) }

// drop ends the writing, even if the command has not read all input.
func (q *input) drop() {
	q.change(func() { q.queue, q.ended = nil, true })
	q.writer.Close()
}

func (q *input) change(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.changed == nil {
		return
	}
	f()
	q.changed.Signal()
}
