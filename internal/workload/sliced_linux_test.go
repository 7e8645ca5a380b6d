package workload

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/result"
)

// sliceables are all workloads that can be sliced, with short slices.
func sliceables(program string) map[string]Sliceable {
	all := map[string]Sliceable{"http_rate": HTTPRate{Program: program}}
	for _, w := range []RR{TCPRR(), UDPRR(), TCPCRR()} {
		w.Program = program
		all[w.name] = w
	}
	for _, w := range []Bulk{TCPBulk(), UDPBulk()} {
		w.Program = program
		all[w.name()] = w
	}
	loaded := NewTCPRRLoaded()
	loaded.Program = program
	all[loaded.name] = loaded
	return all
}

func slicedSession(t *testing.T, w Sliceable, given map[string]any) *Session {
	t.Helper()
	s := loopback(t)
	s.Begin, s.End = nil, nil
	all := map[string]any{"port": freePort(t)}
	info := w.(Workload).Info()
	if info.Name == "tcp_rr_loaded" {
		all["flow_port"] = freePort(t)
	}
	if info.Name == "http_rate" {
		all["server"], all["rate"] = "cnibench", 1000
	}
	for name, value := range given {
		all[name] = value
	}
	var err error
	if s.Params, err = Complete(info, all); err != nil {
		t.Fatal(err)
	}
	watch(t, s)
	return s
}

// Every Sliceable takes slices, and its Outcome is of those that count.
func TestSliceables(t *testing.T) {
	for name, w := range sliceables(builtProgram(t)) {
		t.Run(name, func(t *testing.T) {
			s := slicedSession(t, w, nil)
			opened, err := w.Open(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			headline := result.Rate
			if strings.HasSuffix(name, "_bulk") {
				headline = result.Goodput
			}
			var taken []Slice
			var counting []int // slices with traffic; in others a busy machine gave a side no CPU
			for len(counting) < 3 && len(taken) < 30 {
				calls := ""
				slice, err := opened.Slice(t.Context(), 20*time.Millisecond, 100*time.Millisecond, func() { calls += "b" }, func() { calls += "e" })
				if err != nil {
					t.Fatal(err)
				}
				if calls != "be" || slice.Elapsed < 100*time.Millisecond {
					t.Errorf("marks %q, %+v", calls, slice)
				}
				if slice.Metrics[headline] > 0 {
					counting = append(counting, len(taken))
				}
				taken = append(taken, slice)
			}
			if len(counting) < 3 {
				t.Fatalf("%s of %d slices: %+v", headline, len(taken), taken)
			}
			out, err := opened.Close(func(i int) bool { return i == counting[0] || i == counting[2] })
			if err != nil {
				t.Fatal(err)
			}
			first, last := taken[counting[0]].Metrics[headline], taken[counting[2]].Metrics[headline]
			if got := out.Metrics[headline]; got < 0.999*min(first, last) || got > 1.001*max(first, last) {
				t.Errorf("%s is %v, of slices with %v and %v", headline, got, first, last)
			}
			for _, m := range w.(Workload).Info().Metrics {
				if _, there := out.Metrics[m]; !there && !result.IsLatency(m) {
					t.Errorf("no %s in %v", m, out.Metrics)
				}
			}
			if headline == result.Rate && out.Histograms["service_time"] == nil {
				t.Error("no service times")
			}
			if rawOf(s, "client.json") == "" || rawOf(s, "server.command") == "" {
				t.Error("nothing was kept")
			}
		})
	}
}

// Without flows there are round trips and nothing beside them, and no metric is missing.
func TestLoadedIdle(t *testing.T) {
	w := NewTCPRRLoaded()
	w.Program = builtProgram(t)
	s := slicedSession(t, w, map[string]any{result.FlowsParam: 0, "rate": 500, "connections": 8})
	s.Duration, s.Begin, s.End = 300*time.Millisecond, func() {}, func() {}
	out, err := w.Drive(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if beside, has := out.Metrics[result.LoadGoodput]; !has || beside != 0 || out.Histograms["network_time"] == nil {
		t.Errorf("%v", out.Metrics)
	}
}

// Closed without a slice there is no outcome, and no error.
func TestSlicedClosedAtOnce(t *testing.T) {
	w := TCPBulk()
	w.Program = builtProgram(t)
	opened, err := w.Open(t.Context(), slicedSession(t, w, nil))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := opened.Close(nil); err != nil || len(out.Metrics) != 0 {
		t.Errorf("%+v, %v", out, err)
	}
}

// A slice whose context ends, or whose server dies, is an error, and nothing goes on
// running after Close.
func TestSlicedEndsEarly(t *testing.T) {
	for name, w := range sliceables(builtProgram(t)) {
		t.Run(name, func(t *testing.T) {
			opened, err := w.Open(t.Context(), slicedSession(t, w, nil))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			marks := 0
			_, err = opened.Slice(ctx, 0, time.Hour, func() { marks++; cancel() }, func() { marks-- })
			if !errors.Is(err, context.Canceled) || marks != 0 {
				t.Errorf("%v, marks %+d", err, marks)
			}
			_, _ = opened.Close(nil)

			s := slicedSession(t, w, nil)
			s.Server = mortal{localhost{name: "server", dir: t.TempDir()}}
			if opened, err = w.Open(t.Context(), s); err != nil { // it is dead already on a busy machine
				if !strings.Contains(err.Error(), "the server ended") {
					t.Error(err)
				}
				return
			}
			_, err = opened.Slice(t.Context(), 0, time.Minute, nil, nil)
			_, closeErr := opened.Close(nil)
			if err == nil || closeErr == nil || !strings.Contains(closeErr.Error(), "the server ended") {
				t.Errorf("%v; %v", err, closeErr)
			}
		})
	}
}

// lingering is an endpoint whose programs do not end by themselves.
type lingering struct{ localhost }

func (l lingering) Start(ctx context.Context, c host.Command) (host.Process, error) {
	if !c.OffMeasuredCPUs {
		c.Argv = append([]string{"sh", "-c", `"$@"; exec sleep 60`, "sh"}, c.Argv...)
	}
	return l.localhost.Start(ctx, c)
}

// A client that does not end in time, as on a busy machine, is killed alone: what
// its slices gave stays whole.
func TestSlicedClientHangs(t *testing.T) {
	w := TCPRR()
	w.Program = builtProgram(t)
	s := slicedSession(t, w, nil)
	s.Client = lingering{localhost{name: "client", dir: t.TempDir()}}
	opened, err := w.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := opened.Slice(t.Context(), 20*time.Millisecond, 100*time.Millisecond, nil, nil); err != nil {
		t.Error(err)
	}
	if out, err := opened.Close(nil); err != nil || out.Metrics[result.Rate] <= 0 {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestBulkRefuses(t *testing.T) {
	program := builtProgram(t)
	for _, tt := range []struct {
		w      Bulk
		params map[string]any
		says   string
	}{
		{TCPBulk(), map[string]any{"window": "wide"}, "--window"},
		{TCPBulk(), map[string]any{"streams": 5000}, "from 1 to 1024"},
		{UDPBulk(), map[string]any{"bandwidth": "fast"}, "bandwidth"},
		{UDPBulk(), map[string]any{"length": "10B"}, "udp takes from 32"},
	} {
		tt.w.Program = program
		if _, err := tt.w.Drive(t.Context(), slicedSession(t, tt.w, tt.params)); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%v: %v, want an error that says %q", tt.params, err, tt.says)
		}
	}
}
