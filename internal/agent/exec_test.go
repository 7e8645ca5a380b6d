package agent

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/frame"
	"github.com/cnibench/cnibench/internal/host"
)

// wrapper is a stream to a wrapper of its own process, as in a pod.
func wrapper(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), modeVar+"=exec")
	cmd.Stdout, cmd.Stderr = stdout, stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	cmd.Cancel = in.Close // as an exec stream that breaks
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(in, stdin)
		in.Close()
	}()
	return cmd.Wait()
}

// inside returns a stream to a wrapper in this process, whose silence is that long.
func inside(silence time.Duration) Stream {
	return func(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
		in, w := io.Pipe()
		stop := context.AfterFunc(ctx, func() { w.CloseWithError(io.EOF) })
		defer stop()
		go func() {
			_, _ = io.Copy(w, stdin)
			w.Close()
		}()
		err := serveExec(context.Background(), in, stdout, silence, func() {})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
}

func run(t *testing.T, c host.Command) (string, string, error) {
	t.Helper()
	var out, errs bytes.Buffer
	c.Stdout = &out
	if c.Stderr != nil {
		c.Stderr = &errs
	}
	p, err := StartExec(t.Context(), inside(time.Minute), c)
	if err == nil {
		err = p.Wait()
	}
	return out.String(), errs.String(), err
}

func TestStartExec(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 20_000) // several frames
	for name, c := range map[string]struct {
		command   host.Command
		out, errs string
	}{
		"output":             {host.Command{Argv: []string{"echo", "a", "b"}}, "a b\n", ""},
		"input and its end":  {host.Command{Argv: []string{"cat"}, Stdin: strings.NewReader(long)}, long, ""},
		"no input":           {host.Command{Argv: []string{"cat"}}, "", ""},
		"input nobody reads": {host.Command{Argv: []string{"true"}, Stdin: strings.NewReader(long)}, "", ""},
		"environment":        {host.Command{Argv: []string{"sh", "-c", "echo $GREETING"}, Env: []string{"GREETING=hello"}}, "hello\n", ""},
		"standard error":     {host.Command{Argv: []string{"sh", "-c", "echo out; echo err >&2"}, Stderr: io.Discard}, "out\n", "err\n"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, err := run(t, c.command)
			if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff([2]string{c.out, c.errs}, [2]string{out, errs}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStartExecErrors(t *testing.T) {
	_, _, err := run(t, host.Command{Argv: []string{"sh", "-c", "echo broken >&2; exit 7"}})
	var exit *host.ExitError
	if !errors.As(err, &exit) || exit.Code != 7 || !strings.Contains(exit.Stderr, "broken") {
		t.Errorf("exit 7 gave %v", err)
	}
	_, _, err = run(t, host.Command{Argv: []string{"cnibench-no-such-program"}})
	var missing *host.ProgramError
	if !errors.As(err, &missing) || missing.Program != "cnibench-no-such-program" {
		t.Errorf("a missing program gave %v", err)
	}
	_, _, err = run(t, host.Command{Argv: []string{"sh", "-c", "kill -9 $$"}})
	if !errors.As(err, &exit) || exit.Code != 137 {
		t.Errorf("a command that was killed gave %v", err)
	}
}

func TestStartExecSignals(t *testing.T) {
	said := newAwaited("ready")
	p, err := StartExec(t.Context(), inside(time.Minute), host.Command{
		Argv: []string{"sh", "-c", "trap 'echo ended; exit 3' TERM; echo ready; while :; do sleep 0.01; done"}, Stdout: said,
	})
	if err != nil {
		t.Fatal(err)
	}
	<-said.seen
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	var exit *host.ExitError
	if err := p.Wait(); !errors.As(err, &exit) || exit.Code != 3 {
		t.Errorf("it ended with %v", err)
	}
	if err := p.Signal(os.Kill); err != nil {
		t.Errorf("a signal to what has ended: %v", err)
	}
}

// What ends the command: its context, the stream, a silent other side. Also
// while it reads none of its input.
func TestStartExecKills(t *testing.T) {
	for name, c := range map[string]struct {
		silence time.Duration
		end     func(cancel, cut context.CancelFunc)
		want    error
	}{
		"context": {time.Minute, func(cancel, _ context.CancelFunc) { cancel() }, nil},
		"stream":  {time.Minute, func(_, cut context.CancelFunc) { cut() }, ErrStream},
		"silence": {50 * time.Millisecond, func(_, _ context.CancelFunc) {}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			streamCtx, cut := context.WithCancel(context.Background())
			defer cut()
			said := newAwaited("ready")
			through := inside(c.silence)
			p, err := StartExec(ctx, func(ctx context.Context, in io.Reader, out, errs io.Writer) error {
				ctx, stop := context.WithCancel(ctx)
				defer stop()
				ended := make(chan error, 1)
				go func() { ended <- through(ctx, in, out, errs) }()
				select {
				case err := <-ended:
					return err
				case <-streamCtx.Done():
					return errors.New("connection reset")
				}
			}, host.Command{
				Argv: []string{"sh", "-c", "echo ready; exec sleep 1000"}, Stdout: said, Stdin: strings.NewReader(strings.Repeat("x", 1<<20)),
			})
			if err != nil {
				t.Fatal(err)
			}
			if c.silence == time.Minute {
				<-said.seen
			}
			c.end(cancel, cut)
			ended := make(chan error, 1)
			go func() { ended <- p.Wait() }()
			select {
			case err := <-ended:
				var exit *host.ExitError
				if c.want != nil && !errors.Is(err, c.want) || c.want == nil && (!errors.As(err, &exit) || exit.Code != 137) {
					t.Errorf("it ended with %v", err)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("it still runs")
			}
		})
	}
}

func TestStartExecBrokenStreams(t *testing.T) {
	for name, c := range map[string]struct {
		stream Stream
		want   string
	}{
		"refused": {func(context.Context, io.Reader, io.Writer, io.Writer) error { return errors.New("no such pod") }, "no such pod"},
		"cut at once": {func(_ context.Context, in io.Reader, _, errs io.Writer) error {
			_, _, err := frame.Read(in)
			_, _ = io.WriteString(errs, "exec format error\n")
			return err
		}, "exec format error"},
		"another version": {func(_ context.Context, in io.Reader, out, _ io.Writer) error {
			_, _, _ = frame.Read(in)
			return frame.NewWriter(out).Send('?', nil)
		}, "another version"},
		"no frames": {func(_ context.Context, in io.Reader, out, _ io.Writer) error {
			_, _, _ = frame.Read(in)
			_, err := io.WriteString(out, "Usage: cnibench agent")
			return err
		}, "no frame"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := StartExec(t.Context(), c.stream, host.Command{Argv: []string{"true"}})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestServeExecRefusesOtherInput(t *testing.T) {
	order := func(text string) string {
		var b bytes.Buffer
		_ = frame.NewWriter(&b).Send(frameOrder, []byte(text))
		return b.String()
	}
	for name, c := range map[string]struct{ in, want string }{
		"nothing":       {"", "no order came"},
		"half a frame":  {"c\x00\x00\x00\x05{}", "no order came"},
		"text":          {"GET / HTTP/1.1\r\n", "no frame"},
		"not an order":  {"i\x00\x00\x00\x00", "not an order"},
		"unknown key":   {order(`{"argv":["true"],"shell":true}`), "shell"},
		"no program":    {order(`{"argv":[]}`), "no program"},
		"no JSON":       {order(`true --yes`), "order"},
		"two in a line": {order(`{"argv":["true"]}{}`), "more text"},
	} {
		t.Run(name, func(t *testing.T) {
			err := serveExec(t.Context(), strings.NewReader(c.in), io.Discard, time.Minute, func() {})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("c\x00\x00\x00\x02{}"))
	f.Add([]byte("o\x00\x00\x00\x05half"))
	f.Add([]byte("x\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		var again bytes.Buffer
		w := frame.NewWriter(&again)
		for {
			kind, carried, err := frame.Read(r)
			if err != nil {
				break
			}
			if len(carried) > frame.Max {
				t.Fatalf("a frame of %d bytes", len(carried))
			}
			if err := w.Send(kind, carried); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.HasPrefix(b, again.Bytes()) {
			t.Errorf("%q was read from %q", again.Bytes(), b)
		}
	})
}

// awaited closes seen when the text was written.
type awaited struct {
	text string
	once sync.Once
	seen chan struct{}
	b    bytes.Buffer
}

func newAwaited(text string) *awaited { return &awaited{text: text, seen: make(chan struct{})} }

func (a *awaited) Write(p []byte) (int, error) {
	a.b.Write(p)
	if strings.Contains(a.b.String(), a.text) {
		a.once.Do(func() { close(a.seen) })
	}
	return len(p), nil
}
