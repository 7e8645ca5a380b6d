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

	"github.com/cnibench/cnibench/internal/host"
)

// execSilence is how long the other side may send nothing before it counts as
// gone, so that no load goes on after a connection that broke unnoticed.
const execSilence = 90 * time.Second

// ServeExec runs the command that in orders, and reports to out. The command
// has a process group of its own; it is killed, with all its descendants,
// when in ends, when ctx ends, or when nothing came for execSilence. Errors are
// about the stream; a command that fails is no error.
func ServeExec(ctx context.Context, in io.Reader, out io.Writer) error {
	adoptOrphans()
	// A write to a stream that broke must fail, not end this process before it
	// has killed the command.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return serveExec(ctx, in, out, execSilence, endDescendants)
}

// serveExec ends by calling end, when the command has ended and before that is
// reported.
func serveExec(ctx context.Context, in io.Reader, out io.Writer, silence time.Duration, end func()) error {
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	frames := &frames{w: out}
	r := bufio.NewReader(in)
	kind, b, err := readFrame(r)
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
		stdin, w, err := os.Pipe() // the system's: the end of either side shows at once
		if err != nil {
			return fmt.Errorf("agent exec: %w", err)
		}
		defer stdin.Close()
		command.Stdin = stdin
		input.start(w)
		defer input.drop()
	}
	started := make(chan struct{}) // said, before anything that the command says
	if order.Stdout {
		command.Stdout = after{started, frames.writer(frameOutput)}
	}
	if order.Stderr {
		command.Stderr = after{started, frames.writer(frameError)}
	}
	p, err := host.Local{}.Start(ctx, command)
	if err != nil {
		refusal := execRefusal{Text: err.Error()}
		var missing *host.ProgramError
		if errors.As(err, &missing) {
			refusal = execRefusal{Program: missing.Program, Remedy: missing.Remedy}
		}
		return frames.sendJSON(frameRefused, refusal)
	}
	if f, ok := command.Stdin.(*os.File); ok {
		f.Close() // the command has its own; its end must break our writes
	}
	if err := frames.send(frameStarted, nil); err != nil {
		kill()
	}
	close(started)
	alive := time.AfterFunc(silence, kill)
	defer alive.Stop()
	go func() {
		defer kill() // what ended the stream ends the command
		for {
			kind, b, err := readFrame(r)
			if err != nil {
				return
			}
			alive.Reset(silence)
			switch kind {
			case frameInput:
				input.add(b)
			case frameEnd:
				input.end()
			case frameSignal:
				if s := unix.SignalNum(string(b)); s == syscall.SIGKILL {
					kill()
				} else if s != 0 {
					_ = p.Signal(s) // one that has ended is no error
				}
			}
		}
	}()
	exit := exitOf(p.Wait())
	end()
	return frames.sendJSON(frameExit, exit)
}

// exitOf returns what Wait said.
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

// after is a writer that waits first.
type after struct {
	first <-chan struct{}
	w     io.Writer
}

func (a after) Write(p []byte) (int, error) {
	<-a.first
	return a.w.Write(p)
}

// input hands standard input to the command. Adding to it never blocks, so that a
// command which does not read still gets its signals.
type input struct {
	mu      sync.Mutex
	changed *sync.Cond // nil: the command has no standard input
	queue   [][]byte
	ended   bool
	writer  *os.File
}

// start writes what is added to w, which it closes at the end.
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

// drop ends the writing, even if the command has not read everything.
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
