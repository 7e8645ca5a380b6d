package agent

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/sysmon"
)

// TestAgent has one conversation with every kind of agent that works.
func TestAgent(t *testing.T) {
	for _, tt := range []struct {
		name   string
		runner host.Runner
	}{{"in this process", here{t}}, {"in a child", child{t, "serve"}}} {
		t.Run(tt.name, func(t *testing.T) {
			c := start(t, tt.runner, sysmon.ScopePod)
			ctx := t.Context()
			h, err := c.Hello(ctx, loopback)
			if err != nil {
				t.Fatal(err)
			}
			if h.PID <= 0 || h.Kernel == "" || h.MTU < 1280 || len(h.Interfaces) == 0 {
				t.Errorf("hello %+v", h)
			}
			if _, err := c.Hello(ctx, netip.MustParseAddr("192.0.2.1")); err == nil || !strings.Contains(err.Error(), "no interface holds 192.0.2.1; there are: ") {
				t.Errorf("MTU of a foreign address: %v", err)
			}

			if _, err := c.Mark(ctx); err == nil || !strings.Contains(err.Error(), "mark: no recording runs") {
				t.Errorf("mark without a recording: %v", err)
			}
			if _, err := c.Stop(ctx); err == nil || !strings.Contains(err.Error(), "stop: no recording runs") {
				t.Errorf("stop without a recording: %v", err)
			}
			if err := c.Record(ctx); err != nil {
				t.Fatal(err)
			}
			if err := c.Record(ctx); err == nil || !strings.Contains(err.Error(), "a recording runs already") {
				t.Errorf("a second recording: %v", err)
			}
			begin, err := c.Mark(ctx)
			if err != nil {
				t.Fatal(err)
			}
			port, err := c.Echo(ctx, loopback)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Reach(ctx, loopback, port); err != nil {
				t.Error(err)
			}
			end, err := c.Mark(ctx)
			if err != nil {
				t.Fatal(err)
			}
			rec, err := c.Stop(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]string{"node": "node7", "endpoint": "a, b=c"}, rec.Labels); diff != "" {
				t.Error(diff)
			}
			if n := len(rec.Times); n < 4 {
				t.Errorf("%d snapshots", n)
			}
			if _, there := rec.Family("node_cpu_seconds"); there {
				t.Error("a pod recorded the machine's CPUs")
			}
			if h.Congestion != "" { // Linux
				got, err := rec.Delta("node_netstat_Udp_OutDatagrams", nil, begin, end)
				if err != nil || got < 2 {
					t.Errorf("%v datagrams between the marks, %v; the probe alone made 2", got, err)
				}
			}
			if err := c.Record(ctx); err != nil {
				t.Errorf("another recording: %v", err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if err := c.Close(); err != nil {
				t.Errorf("the second Close: %v", err)
			}
			if _, err := c.Mark(ctx); err == nil {
				t.Error("a closed client asked")
			}
			// Its echo went with it.
			if got := reach(ctx, Probe{Target: netip.AddrPortFrom(loopback, port), Size: 64, Timeout: time.Second}); got.TCP.Kind != Refused {
				t.Errorf("the echo of an agent that ended: %+v", got)
			}
		})
	}
}

// TestAgentKilled kills the agent while a request is under way.
func TestAgentKilled(t *testing.T) {
	c := start(t, child{t, "serve"}, sysmon.ScopeNode)
	h, err := c.Hello(t.Context(), netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Record(t.Context()); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		// Whoever listens there never answers.
		_, err := c.Probe(t.Context(), Probe{Target: silentPort(t), Timeout: time.Minute})
		failed <- err
	}()
	waitPending(c)
	if err := syscall.Kill(h.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	const want = "agent at a, b=c: reach: the agent has ended: "
	if err := <-failed; !errors.Is(err, ErrEnded) || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "exit status 137") {
		t.Errorf("error %v, want %q and exit status 137", err, want)
	}
	if _, err := c.Stop(t.Context()); !errors.Is(err, ErrEnded) {
		t.Errorf("a request to a dead agent: %v", err)
	}
	var exit *host.ExitError
	if err := c.Close(); !errors.As(err, &exit) {
		t.Errorf("closing a dead agent: %v", err)
	}
}

// waitPending waits until the client waits for an answer.
func waitPending(c *Client) {
	for {
		c.mu.Lock()
		n := len(c.pending)
		c.mu.Unlock()
		if n > 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func TestMisbehaviour(t *testing.T) {
	for _, tt := range []struct{ mode, want string }{
		{"fail", "agent at this machine: hello: the agent has ended: "},
		{"garbage", `it wrote no answer but "Usage: something else"`},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			_, err := Start(t.Context(), child{t, tt.mode}, self(t), nil, sysmon.ScopeNode)
			if !errors.Is(err, ErrEnded) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			if tt.mode == "fail" && !strings.Contains(err.Error(), "exit status 2: no such command: agent") {
				t.Errorf("error %v does not tell what the program said", err)
			}
		})
	}
	t.Run("no program", func(t *testing.T) {
		_, err := Start(t.Context(), host.Local{}, "no-such-cnibench", map[string]string{"endpoint": "pod1"}, sysmon.ScopeNode)
		var missing *host.ProgramError
		if !errors.As(err, &missing) || !strings.HasPrefix(err.Error(), "agent at pod1: start: ") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("bad scope", func(t *testing.T) {
		_, err := Start(t.Context(), child{t, "serve"}, self(t), nil, "nod")
		if err == nil || !strings.Contains(err.Error(), `unknown scope "nod"; did you mean "node"?`) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("mute", func(t *testing.T) {
		c := start(t, child{t, "mute"}, sysmon.ScopeNode)
		c.timeout = 50 * time.Millisecond
		if _, err := c.Mark(t.Context()); !errors.Is(err, ErrNoAnswer) || err.Error() != "agent at a, b=c: mark: no answer within 50ms" {
			t.Errorf("error %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Mark(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("deaf", func(t *testing.T) {
		c := start(t, child{t, "deaf"}, sysmon.ScopeNode)
		c.timeout = 50 * time.Millisecond
		var err error
		for range 10_000 { // until the pipe is full
			if _, err = c.EchoAt(t.Context(), netip.AddrPort{}); !errors.Is(err, ErrNoAnswer) || strings.Contains(err.Error(), "killed") {
				break
			}
			c.timeout = 100 * time.Microsecond
		}
		if !errors.Is(err, ErrNoAnswer) || !strings.Contains(err.Error(), "it reads no requests, and was killed") {
			t.Errorf("error %v", err)
		}
		c.timeout = answerTimeout
		if _, err = c.Mark(t.Context()); err == nil {
			t.Error("a killed agent answered")
		}
	})
	t.Run("does not end", func(t *testing.T) {
		c := start(t, child{t, "deaf"}, sysmon.ScopeNode)
		if err := c.Close(); err == nil || !strings.Contains(err.Error(), "was killed") {
			t.Errorf("error %v", err)
		}
	})
}

// TestContextEnds: the agent goes with the context that it was started under.
func TestContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c, err := Start(ctx, child{t, "serve"}, self(t), nil, sysmon.ScopeNode)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-c.ended
	if _, err := c.Mark(t.Context()); !errors.Is(err, ErrEnded) {
		t.Errorf("error %v", err)
	}
	if err := c.Close(); err == nil {
		t.Error("closing a killed agent was no error")
	}
}

// TestInputEnds: an agent whose other side dies, ends.
func TestInputEnds(t *testing.T) {
	in, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	p, err := child{t, "serve"}.Start(t.Context(), host.Command{
		Argv: []string{self(t), "agent", "--scope", "node"}, Stdin: in, OffMeasuredCPUs: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := theirs.WriteString(`{"id":1,"op":"record"}` + "\n"); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
}

// endless is a line that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestEndlessAnswer(t *testing.T) {
	if _, err := readAnswer(bufio.NewReader(endless{})); !errors.Is(err, errLongAnswer) {
		t.Errorf("error %v", err)
	}
	r := bufio.NewReader(strings.NewReader("one\n" + strings.Repeat("x", 10_000) + "\nhalf"))
	for _, want := range []int{4, 10_001} {
		if line, err := readAnswer(r); err != nil || len(line) != want {
			t.Errorf("%d bytes, %v", len(line), err)
		}
	}
	if _, err := readAnswer(r); !errors.Is(err, io.EOF) {
		t.Errorf("error %v at the end", err)
	}
}
