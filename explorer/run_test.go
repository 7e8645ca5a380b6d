// Package explorer holds no code but these tests: that the dashboards show
// what cnibench exports, and that a run comes back from a database as it went
// in. Next: dashboards_test.go, then victoriametrics_test.go.
package explorer

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/cli"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/sysmon"
)

// The run that the tests export.
const (
	runID     = "explorer-test"
	contender = "flannel-vxlan"
	rounds    = 6 // as many as a test needs that gives tiers
	snapshots = 8 // of each recording, a second apart
)

var (
	began      = time.Date(2026, 3, 14, 9, 15, 0, 0, time.UTC)
	contenders = []string{"host", contender, "calico-vxlan"}
	steps      = []result.Step{{ID: "idle", Workload: "idle", Path: "pod"}, {ID: "dts", Workload: "tcp_stream", Path: "pod"}, {ID: "http-350", Workload: "http_rate", Path: "pod"}}
	nodes      = []string{"node1", "node2"}
)

// writeRun makes a run directory as bench does: every metric of the catalogue
// in every sample, and a recording of every sampler at every node.
func writeRun(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "run")
	plan := result.Plan{Suite: "test", Rounds: rounds, Steps: steps}
	for _, c := range contenders {
		plan.Contenders = append(plan.Contenders, result.Entry{ID: c, Underlay: "switch"})
	}
	store, err := result.Create(dir, &result.Run{ID: runID, Started: began, Arena: "lab", Baseline: "host", Plan: plan})
	if err != nil {
		t.Fatal(err)
	}
	order := 0
	for round := 1; round <= rounds; round++ {
		for c, name := range contenders {
			for s, step := range steps {
				order++
				sample := &result.Sample{
					Contender: name, Kernel: "6.18.0", Underlay: "switch", Round: round, Order: order,
					Step: step.ID, Workload: step.Workload, Path: step.Path,
					Started: began.Add(time.Duration(order) * 20 * time.Second), Elapsed: snapshots - 2,
					Verdict: result.Valid, Metrics: map[string]float64{},
				}
				for m, metric := range result.Metrics() {
					sample.Metrics[metric.Name] = float64(m+1) * (1 + 0.37*float64(c) + 0.011*float64(round)) / 3
				}
				sample.Metrics["loss"] /= 1000 // or goodput would mean nothing
				if round == rounds && c == 1 && s == 0 {
					sample.Verdict, sample.Reasons = result.Invalid, []result.Reason{{Code: "made_up", Text: "so that there is one"}}
				}
				writeRecordings(t, store, sample)
				if err := store.Seal(sample); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func writeRecordings(t *testing.T, store *result.Store, sample *result.Sample) {
	t.Helper()
	f, err := store.Raw(sample).Create("metrics.om.zst")
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(f)
	if err != nil {
		t.Fatal(err)
	}
	var recs []*sysmon.Recording
	for _, node := range nodes {
		recs = append(recs, recording(node, sample.Started))
	}
	for _, step := range []func() error{func() error { return sysmon.WriteOpenMetrics(z, recs...) }, z.Close, f.Close} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
}

// recording has all that samplers give. The i-th series of a counter grows by
// slope(i) a second.
func recording(node string, at time.Time) *sysmon.Recording {
	rec := &sysmon.Recording{Labels: map[string]string{"node": node, "endpoint": node}}
	for i := range snapshots {
		rec.Times = append(rec.Times, at.Add(time.Duration(i)*time.Second))
	}
	for _, sampler := range sysmon.Samplers() {
		for _, m := range sampler.Metrics {
			f := sysmon.Family{Name: m.Name, Type: m.Type, Unit: m.Unit, Help: m.Help}
			for i, labels := range labelSets(m.Labels) {
				s := sysmon.Series{Labels: labels}
				for n := range snapshots {
					v := 1000.0
					if m.Type == "counter" {
						v += slope(i) * float64(n)
					}
					s.Values = append(s.Values, sysmon.Value(v))
				}
				f.Series = append(f.Series, s)
			}
			rec.Families = append(rec.Families, f)
		}
	}
	return rec
}

func slope(i int) float64 { return 0.25 * float64(i+1) }

// labelSets are those of a family with these label names.
func labelSets(names []string) []map[string]string {
	sets := []map[string]string{{}}
	for _, name := range names {
		values := map[string][]string{"cpu": {"0", "1"}, "mode": {"user", "system", "softirq", "idle"}, "device": {"eth0", "flannel.1"}}[name]
		if values == nil {
			values = []string{name + "1"}
		}
		var more []map[string]string
		for _, set := range sets {
			for _, v := range values {
				with := map[string]string{name: v}
				for k, v := range set {
					with[k] = v
				}
				more = append(more, with)
			}
		}
		sets = more
	}
	return sets
}

// command runs cnibench with -o and returns what it wrote.
func command(t *testing.T, args ...string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "out")
	if code := cli.Main(append(args, "-o", file)); code != 0 {
		t.Fatalf("cnibench %v: exit code %d", args, code)
	}
	out, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func reportOf(t *testing.T, dir string) *analysis.Report {
	t.Helper()
	r := &analysis.Report{}
	if err := json.Unmarshal(command(t, "report", dir, "--format", "json"), r); err != nil {
		t.Fatal(err)
	}
	return r
}

func readAll(t *testing.T, r io.Reader, what string) []byte {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", what, err))
	}
	return b
}
