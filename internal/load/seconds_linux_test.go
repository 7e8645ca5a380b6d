package load

import (
	"bytes"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/load/serve"
)

// The seconds are the whole: counts and histograms, in the result and in the
// log, also when several threads deliver them.
func TestSecondsAreTheWhole(t *testing.T) {
	_, addr := startServer(t, serve.Config{Stall: 300 * time.Millisecond, Every: 1600 * time.Millisecond})
	var log bytes.Buffer
	res := mustLoad(t, Config{
		Target: addr, Connections: 8, Threads: 2, Rate: 1000, Poisson: true, Seed: 5,
		Warmup: 100 * time.Millisecond, Duration: 2500 * time.Millisecond, Log: &log,
	})
	var requests, errors int64
	for i, s := range res.Seconds {
		if s.T != i {
			t.Errorf("second %d has number %d", i, s.T)
		}
		requests, errors = requests+s.Requests, errors+s.Errors
	}
	if requests != res.Requests || errors != 0 || len(res.Seconds) < 3 || res.Planned < 2200 || res.Planned > 2800 {
		t.Errorf("%d requests and %d errors in %d seconds of %d planned; want %d and none in 3 or, answered late, more", requests, errors, len(res.Seconds), res.Planned, res.Requests)
	}
	if stalled := res.Seconds[1].LatencyMax; stalled < 0.25 {
		t.Errorf("the longest latency with the stall is %v s", stalled)
	}
	merged := map[string]*hdrhistogram.Histogram{"latency": newHistogram(), "service_time": newHistogram()}
	reader := hdrhistogram.NewHistogramLogReader(&log)
	for lines := 0; ; lines++ {
		h, err := reader.NextIntervalHistogram()
		if err != nil {
			t.Fatal(err)
		}
		if h == nil {
			if want := 2 * len(res.Seconds); lines != want {
				t.Errorf("%d lines in the log, want %d", lines, want)
			}
			break
		}
		merged[h.Tag()].Merge(h)
		if h.EndTimeMs()-h.StartTimeMs() != 1000 {
			t.Errorf("an interval of %d ms", h.EndTimeMs()-h.StartTimeMs())
		}
	}
	if !merged["latency"].Equals(res.Latency) || !merged["service_time"].Equals(res.ServiceTime) {
		t.Errorf("the log has %d latencies and %d service times, the result %d and %d, or not the same",
			merged["latency"].TotalCount(), merged["service_time"].TotalCount(), res.Latency.TotalCount(), res.ServiceTime.TotalCount())
	}
}
