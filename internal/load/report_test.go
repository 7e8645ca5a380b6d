package load

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
)

func TestReportRoundTrip(t *testing.T) {
	res := &Result{
		Elapsed: 2 * time.Second, Planned: 2010, Sent: 2000, Requests: 1999, Completed: 1998, Late: 20, Missed: 1,
		Errors: map[Kind]int64{Reset: 2, Status: 3}, Unstamped: map[Unstamped]int64{ClocksApart: 1}, ResponseBytes: 350, GeneratorCPU: 0.25,
		Latency: newHistogram(), ServiceTime: newHistogram(), NetworkTime: newHistogram(), SendLag: newHistogram(),
	}
	for ns := int64(1000); ns <= 2_000_000; ns += 1000 {
		record(res.Latency, ns)
	}
	rep, err := res.Report(Config{Exchange: HTTP{}, Rate: 1000, Connections: 4}, "http://127.0.0.1:80/", true)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(rep)
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(rep, &back); d != "" {
		t.Errorf("-written +read:\n%s", d)
	}
	if back.Rate != 999 || back.Planned != 2010 || back.LateFraction != 0.01 || back.ErrorCount() != 5 {
		t.Errorf("rate %v, late %v, %d errors", back.Rate, back.LateFraction, back.ErrorCount())
	}
	decoded, err := back.Decode()
	if err != nil {
		t.Fatal(err)
	}
	if len(decoded) != 1 || !decoded["latency"].Equals(res.Latency) {
		t.Errorf("decoded %d histograms, or not what was encoded", len(decoded))
	}
}

// A ladder that was interrupted reports what it came to.
func TestReportOfAnInterruptedLadder(t *testing.T) {
	cfg := Config{Exchange: TCPRR{}, Steps: []float64{100, 200, 400}, Duration: time.Second}
	res := &Result{Elapsed: 1500 * time.Millisecond, Interrupted: true, Planned: 200, Steps: newSteps(cfg.Steps)}
	res.Steps[0].Requests, res.Steps[1].Requests = 100, 90
	rep, err := res.Report(cfg, "127.0.0.1:80", false)
	if err != nil {
		t.Fatal(err)
	}
	var rates []float64
	for _, s := range rep.Steps {
		rates = append(rates, s.Rate)
	}
	if d := cmp.Diff([]float64{100, 180}, rates); d != "" || rep.AskedRate != perSecond(200, res.Elapsed) {
		t.Errorf("asked %v/s; steps -want +got:\n%s", rep.AskedRate, d)
	}
}

func TestTimesLeavesOutWhatTheCountDoesNotCarry(t *testing.T) {
	tests := []struct {
		n    int
		last string // the highest percentile that is given
		not  string
	}{
		{19, "mean", "p50"},
		{20, "p50", "p90"},
		{999, "p95", "p99"},
		{1000, "p99", "p99_5"},
		{10_000, "p99_9", "p99_99"},
		{1_000_000, "p99_999", ""},
	}
	for _, tt := range tests {
		h := newHistogram()
		for i := range tt.n {
			record(h, int64(i+1))
		}
		m := Times("latency", h)
		_, last := m["latency_"+tt.last]
		_, not := m["latency_"+tt.not]
		if !last || not {
			t.Errorf("%d samples: have %s: %v, want true; have %s: %v, want false", tt.n, tt.last, last, tt.not, not)
		}
	}
}

// What a report holds may come from any program: its histograms are decoded
// or refused, and what was decoded is encoded to the same again.
func FuzzReport(f *testing.F) {
	res := &Result{Elapsed: time.Second, Errors: map[Kind]int64{}, Latency: newHistogram(), Seconds: []Second{{T: 0, Requests: 3, LatencyMax: 0.1}}}
	for ns := int64(1); ns < 1_000_000_000; ns *= 7 {
		record(res.Latency, ns)
	}
	rep, err := res.Report(Config{Exchange: UDPRR{}, Rate: 10}, "127.0.0.1:80", true)
	if err != nil {
		f.Fatal(err)
	}
	text, err := json.Marshal(rep)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"histograms":{"latency":"HISTFAAAAA=="},"latency_p50":1}`))
	f.Add([]byte(`{"limits":[{"code":"x"}],"steps":[{"times":{"latency_max":3}}],"max_rate":1e9}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var rep Report
		if json.Unmarshal(in, &rep) != nil {
			return
		}
		decoded, err := rep.Decode()
		if err != nil {
			return
		}
		for clock, h := range decoded {
			encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
			if err != nil {
				t.Fatalf("%s was decoded and is not encoded: %v", clock, err)
			}
			again, err := hdrhistogram.Decode(encoded)
			if err != nil || again.TotalCount() != h.TotalCount() {
				t.Fatalf("%s: %d values are other ones when encoded and decoded again; %v", clock, h.TotalCount(), err)
			}
		}
	})
}
