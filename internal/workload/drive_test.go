package workload

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/host/programs"
)

// watched is an endpoint that remembers what was started at it.
type watched struct {
	arena.Endpoint
	mu      sync.Mutex
	started []*watchedProcess
}

type watchedProcess struct {
	host.Process
	argv   []string
	waited chan struct{}
}

func (w *watched) Start(ctx context.Context, c host.Command) (host.Process, error) {
	p, err := w.Endpoint.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	x := &watchedProcess{p, c.Argv, make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.started = append(w.started, x)
	return x, nil
}

func (p *watchedProcess) Wait() error {
	defer close(p.waited)
	return p.Process.Wait()
}

// of lists the processes of a program.
func (w *watched) of(name string) []*watchedProcess {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.started), func(p *watchedProcess) bool { return p.argv[0] != name })
}

// watch makes the session's endpoints watched ones and proves at the end of
// the test that no process outlived its drive.
func watch(t *testing.T, s *Session) (client, server *watched) {
	client, server = &watched{Endpoint: s.Client}, &watched{Endpoint: s.Server}
	s.Client, s.Server = client, server
	t.Cleanup(func() {
		for _, w := range []*watched{client, server} {
			for _, p := range w.started {
				select {
				case <-p.waited:
				default:
					t.Errorf("still running: %v", p.argv)
				}
			}
		}
	})
	return client, server
}

// prepare is a loopback session for w with the window that it marks.
func prepare(t *testing.T, w Workload, params map[string]any) (*Session, *window) {
	t.Helper()
	needPrograms(t, w)
	s, marks := loopback(t), &window{}
	s.Begin, s.End = marks.begin, marks.end
	var err error
	if s.Params, err = Complete(w.Info(), params); err != nil {
		t.Fatal(err)
	}
	return s, marks
}

// codes returns the codes of the notes, in order.
func codes(out Outcome) string {
	var list []string
	for _, n := range out.Notes {
		list = append(list, n.Code)
	}
	return strings.Join(list, " ")
}

const pairsNote = "multi_stream_processes"

func TestDrive(t *testing.T) {
	startsAsUsual(t)
	const ms = time.Millisecond
	tests := []struct {
		name             string
		w                Workload
		params           map[string]any
		warmup, duration time.Duration
		window           time.Duration // marked
		notes            string
	}{
		{"idle", Idle{}, nil, 100 * ms, 300 * ms, 300 * ms, ""},
		{"tcp_stream whole", TCPStream{}, nil, 1000 * ms, 1000 * ms, 1000 * ms, ""},
		{"tcp_stream intervals", TCPStream{}, nil, 300 * ms, 1500 * ms, 1500 * ms, "interval_window"},
		{"tcp_stream pairs", TCPStream{}, map[string]any{"streams": 3}, 0, 1000 * ms, 1000 * ms, pairsNote},
		{"tcp_stream zerocopy", TCPStream{}, map[string]any{"zerocopy": true}, 0, 1000 * ms, 1000 * ms, ""},
		{"udp_stream whole", UDPStream{}, map[string]any{"length": 1400, "bandwidth": "20M"}, 0, 1000 * ms, 1000 * ms, ""},
		{"udp_stream intervals", UDPStream{}, map[string]any{"bandwidth": "50M", "streams": 2}, 200 * ms, 700 * ms, 700 * ms, "interval_window " + pairsNote},
		{"tcp_lat", TCPLat(), nil, 0, 1000 * ms, 1000 * ms, "one_way_latency"},
		{"udp_lat", UDPLat(), map[string]any{"size": 1024}, 0, 1000 * ms, 1000 * ms, "one_way_latency"},
		{"tcp_bw rounded up, with a warm-up", TCPBW(), map[string]any{"size": 4096}, 200 * ms, 600 * ms, 1000 * ms, "whole_seconds"},
		{"udp_bw", UDPBW(), map[string]any{"size": 1024}, 0, 1000 * ms, 1000 * ms, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, marks := prepare(t, tt.w, tt.params)
			s.Warmup, s.Duration = tt.warmup, tt.duration
			watch(t, s)
			start := time.Now()
			out, err := tt.w.Drive(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range tt.w.Info().Metrics {
				if v, there := out.Metrics[name]; !there || v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
					t.Errorf("%s is %v (%v)", name, v, there)
				}
			}
			if len(out.Metrics) != len(tt.w.Info().Metrics) {
				t.Errorf("metrics %v, announced %v", out.Metrics, tt.w.Info().Metrics)
			}
			if len(marks.begins) != 1 || len(marks.ends) != 1 {
				t.Fatalf("%d begins and %d ends", len(marks.begins), len(marks.ends))
			}
			// On a busy machine a mark may come late, never early.
			if w := marks.ends[0].Sub(marks.begins[0]); w < tt.window/2 {
				t.Errorf("a window of %v, want %v", w, tt.window)
			}
			if b := marks.begins[0].Sub(start); b < tt.warmup {
				t.Errorf("the window began after %v, within the warm-up of %v", b, tt.warmup)
			}
			want := tt.notes
			if strings.Contains(want, pairsNote) {
				// A newer iperf3 needs no pairs.
				if version, _, err := iperf3AtBoth(t.Context(), s); err != nil {
					t.Fatal(err)
				} else if version.threaded() {
					want = strings.TrimSpace(strings.TrimSuffix(want, pairsNote))
				}
			}
			if got := codes(out); got != want {
				t.Errorf("notes %q, want %q", got, want)
			}
		})
	}
}

// startsAsUsual has every start of iperf3 taken for a usual machine's, however busy this one
// is, so that a window of whole seconds is its own.
func startsAsUsual(t *testing.T) {
	before := iperf3Usual
	iperf3Usual = time.Hour
	t.Cleanup(func() { iperf3Usual = before })
}

// The note claims no common window, which processes do not have.
func TestProcessesNote(t *testing.T) {
	start := time.Now()
	got := processesNote("3.12", []*program{{started: start}, {started: start.Add(time.Millisecond)}, {started: start.Add(2400 * time.Microsecond)}})
	for _, want := range []string{"iperf3 3.12", "3 streams", "each over its own window", "within 3 ms of each other"} {
		if !strings.Contains(got.Text, want) {
			t.Errorf("%q does not say %q", got.Text, want)
		}
	}
}

// Half a round trip in a closed loop has the name of a latency and is another
// thing than that of http_rate; who lists the workloads must see that.
func TestOneWayLatencyIsSaid(t *testing.T) {
	for _, w := range []Workload{TCPLat(), UDPLat()} {
		if s := w.Info().Summary; !strings.Contains(s, "half a round trip, closed loop") {
			t.Errorf("%s: %s", w.Info().Name, s)
		}
	}
}

// A whole window gives the figures of iperf3's own summary, which both sides
// print.
func TestStreamIsIperf3sSummary(t *testing.T) {
	startsAsUsual(t)
	s, _ := prepare(t, TCPStream{}, nil)
	s.Warmup, s.Duration = time.Second, time.Second
	out, err := TCPStream{}.Drive(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	client, err := parseIperf3(strings.NewReader(rawOf(s, "client-1.json")))
	if err != nil {
		t.Fatal(err)
	}
	received := client.End.Received
	if want := 8 * received.Bytes / received.Seconds; math.Abs(out.Metrics["goodput"]/want-1) > 1e-9 {
		t.Errorf("goodput %v, iperf3's client says %v", out.Metrics["goodput"], want)
	}
	if out.Metrics["retransmits"] != *client.End.Sent.Retransmits {
		t.Errorf("retransmits %v, iperf3's client says %v", out.Metrics["retransmits"], *client.End.Sent.Retransmits)
	}
	for _, name := range []string{"server-1.command", "server-1.json", "client-1.command"} {
		if rawOf(s, name) == "" {
			t.Errorf("nothing in %s", name)
		}
	}
}

// The load is at the rate that was asked for, however it is added up.
func TestUDPBandwidth(t *testing.T) {
	for _, duration := range []time.Duration{time.Second, 700 * time.Millisecond} {
		s, _ := prepare(t, UDPStream{}, map[string]any{"bandwidth": "20M", "streams": 2, "length": 1000})
		s.Warmup, s.Duration = 0, duration
		out, err := UDPStream{}.Drive(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		// iperf3 catches up after a stall, so that the mean holds on a busy machine.
		if g := out.Metrics["goodput"]; g < 20e6 || g > 60e6 {
			t.Errorf("%v: goodput %v, want 2 × 20 Mbit/s", duration, g)
		}
	}
}

// A server that dies in the middle is an error that names the cause, and no
// figure.
func TestServerDies(t *testing.T) {
	tests := []struct {
		w       Workload
		params  map[string]any
		program string
		want    []string
	}{
		{TCPStream{}, nil, "iperf3", []string{"tcp_stream: ", "server 1: ", "exit status 137", "client 1: "}},
		{TCPStream{}, map[string]any{"streams": 2}, "iperf3", []string{"server ", "exit status 137"}},
		{UDPStream{}, map[string]any{"bandwidth": "10M"}, "iperf3", []string{"udp_stream: ", "server 1: ", "exit status 137", "control socket"}},
		{TCPLat(), nil, "qperf", []string{"tcp_lat: ", "server: ", "exit status 137"}},
		{UDPBW(), nil, "qperf", []string{"udp_bw: ", "server: ", "exit status 137"}},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.w.Info().Name, tt.params), func(t *testing.T) {
			s, marks := prepare(t, tt.w, tt.params)
			s.Warmup, s.Duration = 0, 3*time.Second
			_, server := watch(t, s)
			s.Begin = func() {
				marks.begin()
				time.AfterFunc(700*time.Millisecond, func() {
					running := serving(server.of(tt.program))
					if err := running[len(running)-1].Signal(syscall.SIGKILL); err != nil {
						t.Error(err)
					}
				})
			}
			out, err := tt.w.Drive(t.Context(), s)
			if err == nil || out.Metrics != nil {
				t.Fatalf("measured %v, %v", out.Metrics, err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\ndoes not contain %q", err, want)
				}
			}
			if len(marks.begins) != len(marks.ends) {
				t.Errorf("%d begins and %d ends", len(marks.begins), len(marks.ends))
			}
		})
	}
}

// serving leaves out the processes that only say their version.
func serving(list []*watchedProcess) []*watchedProcess {
	return slices.DeleteFunc(list, func(p *watchedProcess) bool { return slices.Contains(p.argv, "--version") })
}

// A server that stops answering ends with the context, as such.
func TestServerHangs(t *testing.T) {
	for _, w := range []Workload{TCPStream{}, TCPLat()} {
		t.Run(w.Info().Name, func(t *testing.T) {
			s, marks := prepare(t, w, nil)
			s.Warmup, s.Duration = 0, 2*time.Second
			_, server := watch(t, s)
			s.Begin = func() {
				marks.begin()
				stopped := 0 // a server whose port was taken has ended before another began
				for _, p := range serving(server.of(programs.Workload(w.Info().Name)[0])) {
					if p.Signal(syscall.SIGSTOP) == nil {
						stopped++
					}
				}
				if stopped == 0 {
					t.Error("no server was stopped")
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			out, err := w.Drive(ctx, s)
			if !errors.Is(err, context.DeadlineExceeded) || out.Metrics != nil {
				t.Errorf("%v, %v; want the deadline", out.Metrics, err)
			}
		})
	}
}

// What cannot be reached is an error that says so.
func TestUnreachable(t *testing.T) {
	for _, w := range []Workload{TCPStream{}, UDPStream{}, TCPLat()} {
		t.Run(w.Info().Name, func(t *testing.T) {
			s, marks := prepare(t, w, nil)
			s.Client = deaf{s.Client}
			watch(t, s)
			out, err := w.Drive(t.Context(), s)
			if err == nil || out.Metrics != nil || !strings.Contains(err.Error(), "connect") {
				t.Errorf("%v, %v", out.Metrics, err)
			}
			if len(marks.begins) != len(marks.ends) {
				t.Errorf("%d begins and %d ends", len(marks.begins), len(marks.ends))
			}
		})
	}
}

// deaf starts clients with a port that nobody listens on.
type deaf struct{ arena.Endpoint }

func (d deaf) Start(ctx context.Context, c host.Command) (host.Process, error) {
	for i := 1; i < len(c.Argv); i++ {
		if c.Argv[i-1] == "-p" || c.Argv[i-1] == "--listen_port" {
			c.Argv = slices.Clone(c.Argv)
			c.Argv[i] = "9"
		}
	}
	return d.Endpoint.Start(ctx, c)
}

// A missing program is named with its package.
func TestMissingProgram(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := os.Symlink("/bin/cat", os.Getenv("PATH")+"/cat"); err != nil {
		t.Fatal(err)
	}
	for _, w := range []Workload{TCPStream{}, TCPLat()} {
		s := loopback(t)
		var err error
		if s.Params, err = Complete(w.Info(), nil); err != nil {
			t.Fatal(err)
		}
		_, err = w.Drive(t.Context(), s)
		var missing *host.ProgramError
		if !errors.As(err, &missing) || missing.Program != programs.Workload(w.Info().Name)[0] {
			t.Errorf("%s: %v", w.Info().Name, err)
		}
	}
}

// Parameters that no program takes are refused before anything starts.
func TestBadParams(t *testing.T) {
	tests := []struct {
		w      Workload
		params map[string]any
		want   string
	}{
		{TCPStream{}, map[string]any{"streams": 0}, "tcp_stream: 0 streams; iperf3 takes 1 to 128"},
		{TCPStream{}, map[string]any{"streams": 129}, "129 streams"},
		{UDPStream{}, map[string]any{"length": -1}, "udp_stream: length -1"},
		{UDPStream{}, map[string]any{"length": 65508}, "length 65508"},
		{UDPLat(), map[string]any{"size": 0}, "udp_lat: size 0"},
		{UDPLat(), map[string]any{"size": 65508}, "size 65508"},
	}
	for _, tt := range tests {
		s := loopback(t)
		client, server := watch(t, s)
		var err error
		if s.Params, err = Complete(tt.w.Info(), tt.params); err != nil {
			t.Fatal(err)
		}
		if _, err = tt.w.Drive(t.Context(), s); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
		if len(client.started)+len(server.started) > 0 {
			t.Errorf("%v: started %v", tt.params, server.started[0].argv)
		}
	}
}

func TestIdleEnds(t *testing.T) {
	s := loopback(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	s.Warmup, s.Duration = 0, time.Hour
	if _, err := (Idle{}).Drive(ctx, s); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
