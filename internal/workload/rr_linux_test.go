package workload

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/result"
)

// rrSession is a short session of w on loopback with its window.
func rrSession(t *testing.T, w RR, params map[string]any) (*Session, *window) {
	t.Helper()
	s, marks := loopback(t), &window{}
	s.Begin, s.End = marks.begin, marks.end
	s.Warmup, s.Duration = 100*time.Millisecond, time.Second // a server's thread may begin half a second late on a busy machine
	given := map[string]any{"port": freePort(t)}
	for name, value := range params {
		given[name] = value
	}
	var err error
	if s.Params, err = Complete(w.Info(), given); err != nil {
		t.Fatal(err)
	}
	return s, marks
}

// Every RR workload with sizes, threads, and both loops.
func TestRR(t *testing.T) {
	program := builtProgram(t)
	for _, w := range []RR{TCPRR(), TCPCRR(), UDPRR()} {
		w.Program = program
		for _, tt := range []struct {
			name   string
			params map[string]any
		}{
			{"closed", nil},
			{"closed, several", map[string]any{"connections": 8, "request": "100B", "response": "16KiB", "threads": 2, "workers": 2}},
			{"open", map[string]any{"rate": 500, "connections": 4, "request": 64, "arrivals": "poisson"}},
		} {
			if size, number := tt.params["request"].(int); number {
				tt.params["request"] = fmt.Sprint(size)
			}
			t.Run(w.name+" "+tt.name, func(t *testing.T) {
				s, marks := rrSession(t, w, tt.params)
				watch(t, s)
				out, err := w.Drive(t.Context(), s)
				if err != nil {
					t.Fatal(err)
				}
				if len(marks.begins) != 1 || len(marks.ends) != 1 {
					t.Errorf("%d begins and %d ends of the window, want one each", len(marks.begins), len(marks.ends))
				}
				noShortfall(t, out)
				clocks := []string{"service_time", "network_time"}
				if s.Params.Float("rate") > 0 {
					clocks = append(clocks, "latency", "send_lag")
				} else if out.Histograms["latency"] != nil {
					t.Error("a closed loop has a latency")
				}
				for _, clock := range clocks {
					if h := out.Histograms[clock]; h == nil || h.TotalCount() == 0 {
						t.Errorf("the %s histogram has no values", clock)
					}
				}
				for name := range out.Metrics {
					if _, known := result.LookupMetric(name); !known {
						t.Errorf("metric %s is not in the catalogue", name)
					}
				}
				for _, name := range []string{"rate", "service_time_mean", "network_time_max"} {
					if !slices.Contains(w.Info().Metrics, name) || out.Metrics[name] <= 0 {
						t.Errorf("%s is %v, and the workload has %v", name, out.Metrics[name], w.Info().Metrics)
					}
				}
			})
		}
	}
}

func TestRRRefuses(t *testing.T) {
	w := UDPRR()
	w.Program = builtProgram(t)
	for _, tt := range []struct {
		params map[string]any
		says   string
	}{
		{map[string]any{"request": "big"}, "request: "},
		{map[string]any{"response": "64KiB"}, "1 to 65507"},
		{map[string]any{"arrivals": "sometimes"}, "sometimes"},
	} {
		s, _ := rrSession(t, w, tt.params)
		watch(t, s)
		if tt.params["arrivals"] != nil {
			s.Params["rate"] = 10.0
		}
		if _, err := w.Drive(t.Context(), s); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%v: error %v, want one that says %q", tt.params, err, tt.says)
		}
	}
	if _, err := Complete(w.Info(), map[string]any{"requests": "1B"}); err == nil {
		t.Error("an unknown parameter was taken")
	}
}
