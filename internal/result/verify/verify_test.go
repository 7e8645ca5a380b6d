package verify_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/result/verify"
)

// made is a run of one bulk step, whose server's JSON is a recorded one, and one of
// latencies; change alters the samples before they are sealed.
func made(t *testing.T, change func(bulk, paced *result.Sample)) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	started := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	store, err := result.Create(dir, &result.Run{ID: "x", Started: started, Arena: "lab", Baseline: "host", Tool: result.Tool{Name: "cnibench"},
		Plan: result.Plan{Suite: "quick", Rounds: 1, Warmup: 1, Duration: 2,
			Contenders: []result.Entry{{ID: "host", Underlay: "switch"}}, Steps: []result.Step{{ID: "dts"}, {ID: "http"}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	server, err := os.ReadFile("../../workload/testdata/iperf3/tcp-whole-server.json")
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		End struct {
			Received struct {
				Bytes, Seconds float64
			} `json:"sum_received"`
		}
	}
	if err := json.Unmarshal(server, &report); err != nil {
		t.Fatal(err)
	}
	sample := func(step, workload string, metrics map[string]float64) *result.Sample {
		return &result.Sample{Contender: "host", Kernel: "6.18", Underlay: "switch", Round: 1, Order: 1, Step: step, Workload: workload, Path: "pod",
			Started: started, Elapsed: 2, Verdict: result.Valid, Metrics: metrics}
	}
	bulk := sample("dts", "tcp_stream", map[string]float64{"goodput": 8 * report.End.Received.Bytes / report.End.Received.Seconds})
	h := hdrhistogram.New(1, 1e9, 3)
	for i := range int64(1000) {
		if err := h.RecordValue(1000 * (i + 1)); err != nil {
			t.Fatal(err)
		}
	}
	paced := sample("http", "http_rate", map[string]float64{"latency_p50": 500e-6, "latency_p99": 990e-6})
	paced.Histograms = map[string]*hdrhistogram.Histogram{"latency": h}
	file, err := store.Raw(bulk).Create("server-1.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(server); err != nil {
		t.Fatal(err)
	}
	file.Close()
	change(bulk, paced)
	for _, s := range []*result.Sample{bulk, paced} {
		if err := store.Seal(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.End(started); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestVerify(t *testing.T) {
	for name, c := range map[string]struct {
		change func(bulk, paced *result.Sample)
		after  func(dir string) error
		want   string // in the first problem; "" for none
	}{
		"as it was": {},
		"a goodput that iperf3 did not see": {change: func(bulk, _ *result.Sample) { bulk.Metrics["goodput"] *= 1.01 },
			want: "host, step dts, round 1: goodput is "},
		"a percentile that the histogram does not have": {change: func(_, paced *result.Sample) { paced.Metrics["latency_p99"] = 800e-6 },
			want: "host, step http, round 1: latency_p99 is 800 µs, its histogram says 990 µs"},
		"a raw file changed": {after: func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "raw", "host", "1", "dts", "note.txt"), nil, 0o600)
		}, want: "/run/raw/host/1/dts was changed after the end of the run"},
		"a key of run.json changed": {after: func(dir string) error {
			return replaceIn(filepath.Join(dir, "run.json"), `"suite": "quick"`, `"suite": "full"`)
		}, want: "/run/run.json was changed after the end of the run"},
		"the digest of an earlier version": {after: func(dir string) error {
			text, err := os.ReadFile(filepath.Join(dir, "run.json"))
			if err != nil {
				return err
			}
			text = regexp.MustCompile(`,\s*"run.json": "[0-9a-f]{64}"|"run.json": "[0-9a-f]{64}",\s*`).ReplaceAll(text, nil)
			return os.WriteFile(filepath.Join(dir, "run.json"), text, 0o600)
		}},
		"a sample of another plan":   {change: func(bulk, _ *result.Sample) { bulk.Contender = "calico" }, want: "calico, step dts, round 1: the plan in run.json has no such contender"},
		"a step of another plan":     {change: func(_, paced *result.Sample) { paced.Step = "dus" }, want: "host, step dus, round 1: the plan in run.json has no such step"},
		"a round after the planned":  {change: func(_, paced *result.Sample) { paced.Round = 2 }, want: "host, step http, round 2: the plan in run.json has 1 rounds"},
		"the time to come up, setup": {change: func(_, paced *result.Sample) { paced.Step = "setup" }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := made(t, func(bulk, paced *result.Sample) {
				if c.change != nil {
					c.change(bulk, paced)
				}
			})
			if c.after != nil {
				if err := c.after(dir); err != nil {
					t.Fatal(err)
				}
			}
			r, err := verify.Run(dir)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Ended || r.Percentiles != 2 || r.Samples != 2 {
				t.Errorf("%+v", r)
			}
			switch {
			case c.want == "" && (len(r.Problems) > 0 || r.Goodputs != 1):
				t.Errorf("%+v", r)
			case c.want != "" && (len(r.Problems) == 0 || !strings.Contains(r.Problems[0], c.want)):
				t.Errorf("problems %q, want %q", r.Problems, c.want)
			}
		})
	}
}

func replaceIn(file, old, text string) error {
	before, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(strings.Replace(string(before), old, text, 1)), 0o600)
}
