package load

import (
	"context"
	"errors"
	"math"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/load/serve"
)

func openLoad(t *testing.T, cfg Config) *Session {
	t.Helper()
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func takeSlice(t *testing.T, s *Session, lead, length time.Duration) *Result {
	t.Helper()
	begins, ends := 0, 0
	r, err := s.Slice(t.Context(), lead, length, func() { begins++ }, func() { ends++ })
	if err != nil {
		t.Fatal(err)
	}
	if begins != 1 || ends != 1 {
		t.Errorf("%d begins, %d ends", begins, ends)
	}
	return r
}

// Each slice does the whole plan from its own start, nothing is sent between slices,
// and the total is the sum of them.
func TestSlicesDoTheirPlan(t *testing.T) {
	for _, tt := range exchanges(Sizes{}) {
		for threads := 1; threads <= 2; threads++ {
			t.Run(describe(tt.exchange), func(t *testing.T) {
				server, addr := startServer(t, tt.server)
				s := openLoad(t, Config{Target: addr, Exchange: tt.exchange, Connections: 6, Threads: threads, Rate: 1000})
				seen := int64(1) // the very first answer
				var reports []*Report
				for range 3 {
					if got := answered(server, seen); got != seen {
						t.Errorf("the server saw %d requests before the slice, want %d", got, seen)
					}
					r := takeSlice(t, s, 20*time.Millisecond, 50*time.Millisecond)
					if r.Planned != 50 || r.Requests != 50 || r.Latency.TotalCount() != 50 || r.ServiceTime.TotalCount() != 50 || r.Reopened != 0 {
						t.Errorf("planned %d, answered %d, %d latencies, %d service times, reopened %d; want 50 of each and none",
							r.Planned, r.Requests, r.Latency.TotalCount(), r.ServiceTime.TotalCount(), r.Reopened)
					}
					seen += 70
					reports = append(reports, reportOf(t, s, r))
				}
				sum, err := Merge(reports)
				if err != nil {
					t.Fatal(err)
				}
				latencies := sum.histogram(t, "latency").TotalCount()
				if sum.Planned != 150 || sum.Requests != 150 || latencies != 150 || math.Abs(sum.Duration-0.15) > 1e-9 || sum.Threads != threads {
					t.Errorf("in total planned %d, answered %d, %d latencies in %v s on %d threads; want 150, 150, 150 in 0.15 s on %d",
						sum.Planned, sum.Requests, latencies, sum.Duration, sum.Threads, threads)
				}
				if mean := (reports[0].Rate + reports[1].Rate + reports[2].Rate) / 3; math.Abs(sum.Rate-mean) > 1e-6 {
					t.Errorf("a rate of %v in total, %v in the mean of the slices", sum.Rate, mean)
				}
				if sum.GeneratorCPU <= 0 || sum.ResponseBytes != int64(tt.server.Response) {
					t.Errorf("in total %v CPU, responses of %d bytes", sum.GeneratorCPU, sum.ResponseBytes)
				}
			})
		}
	}
}

func reportOf(t *testing.T, s *Session, r *Result) *Report {
	t.Helper()
	report, err := r.Report(s.cfg, "target", true)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func (r *Report) histogram(t *testing.T, clock string) *hdrhistogram.Histogram {
	t.Helper()
	all, err := r.Decode()
	if err != nil {
		t.Fatal(err)
	}
	return all[clock]
}

// Poisson slices have plans of their own, and the same ones every time.
func TestSlicesArePoisson(t *testing.T) {
	_, addr := startServer(t, serve.Config{Protocol: serve.TCP, Request: 1, Response: 1})
	var planned [2][3]int64
	for k := range planned {
		s := openLoad(t, Config{Target: addr, Exchange: TCPRR{}, Connections: 4, Rate: 2000, Poisson: true, Seed: 3})
		for i := range planned[k] {
			planned[k][i] = takeSlice(t, s, 0, 60*time.Millisecond).Planned
		}
	}
	if planned[0] != planned[1] || planned[0][0] == planned[0][1] && planned[0][1] == planned[0][2] {
		t.Errorf("planned %v", planned)
	}
}

// A closed loop goes on in each slice.
func TestSlicesOfAClosedLoop(t *testing.T) {
	_, addr := startServer(t, serve.Config{Protocol: serve.TCP, Request: 1, Response: 1})
	s := openLoad(t, Config{Target: addr, Exchange: TCPRR{}, Connections: 3})
	var sum int64
	var reports []*Report
	for range 3 {
		r := takeSlice(t, s, 10*time.Millisecond, 50*time.Millisecond)
		if r.Requests == 0 || r.Latency.TotalCount() != 0 {
			t.Errorf("%d requests, %d latencies", r.Requests, r.Latency.TotalCount())
		}
		sum += r.ServiceTime.TotalCount()
		reports = append(reports, reportOf(t, s, r))
	}
	merged, err := Merge(reports)
	if err != nil {
		t.Fatal(err)
	}
	if n := merged.histogram(t, "service_time").TotalCount(); n != sum {
		t.Errorf("%d service times in total, %d in the slices", n, sum)
	}
}

// A request without an answer at a slice's end counts with its age, and its
// connection is made again; so is one that the server closed between slices.
func TestSlicesReopen(t *testing.T) {
	var mu sync.Mutex
	silent := true
	var open []net.Conn
	addr := serveTCP(t, func(c net.Conn) {
		mu.Lock()
		open = append(open, c)
		first := len(open) == 1 // the very first answer
		mu.Unlock()
		for b := make([]byte, 1); ; {
			if _, err := c.Read(b); err != nil {
				return
			}
			mu.Lock()
			answer := first || !silent
			mu.Unlock()
			if answer {
				_, _ = c.Write(b) // the load may be gone
			}
		}
	})
	s := openLoad(t, Config{Target: addr, Exchange: TCPRR{}, Connections: 2, Rate: 100})
	r := takeSlice(t, s, 0, 50*time.Millisecond)
	if r.Planned != 5 || r.Missed != 5 || r.Latency.TotalCount() != 5 || r.Latency.Max() < int64(drain) {
		t.Errorf("planned %d, missed %d, %d latencies up to %v; want 5, 5, 5 above %v", r.Planned, r.Missed, r.Latency.TotalCount(), time.Duration(r.Latency.Max()), drain)
	}
	mu.Lock()
	silent = false
	mu.Unlock()
	if r = takeSlice(t, s, 0, 50*time.Millisecond); r.Reopened != 2 || r.Requests != 5 {
		t.Errorf("reopened %d, answered %d; want 2 and 5", r.Reopened, r.Requests)
	}
	mu.Lock()
	err := open[len(open)-1].Close()
	mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if r = takeSlice(t, s, 0, 50*time.Millisecond); r.Reopened != 1 || r.Requests != 5 || len(r.ConnectionErrors) != 0 {
		t.Errorf("reopened %d, answered %d, errors %v; want 1, 5, none", r.Reopened, r.Requests, r.ConnectionErrors)
	}
}

func TestSlicesRefuse(t *testing.T) {
	_, addr := startServer(t, serve.Config{Protocol: serve.TCP, Request: 1, Response: 1})
	if _, err := Open(t.Context(), Config{Target: addr, Exchange: TCPRR{}, Connections: 1, Steps: []float64{1, 2}}); !errors.Is(err, ErrConfig) {
		t.Errorf("steps: %v", err)
	}
	s := openLoad(t, Config{Target: addr, Exchange: TCPRR{}, Connections: 1})
	if _, err := s.Slice(t.Context(), 0, 0, nil, nil); !errors.Is(err, ErrConfig) {
		t.Errorf("no length: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Slice(ctx, time.Second, time.Second, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}
