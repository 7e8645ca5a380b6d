package trace

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/klauspost/compress/zstd"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/sysmon"
	"github.com/cnibench/cnibench/internal/unit"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// at are snapshots at so many milliseconds after start.
func at(ms ...int) []time.Time {
	times := make([]time.Time, len(ms))
	for i, m := range ms {
		times[i] = start.Add(time.Duration(m) * time.Millisecond)
	}
	return times
}

// growing returns a counter that grows by so much a second, whenever it is read.
func growing(times []time.Time, perSecond float64) []sysmon.Value {
	values := make([]sysmon.Value, len(times))
	for i, t := range times {
		values[i] = sysmon.Value(1000 + perSecond*t.Sub(start).Seconds())
	}
	return values
}

func counter(name, unit string, series ...sysmon.Series) sysmon.Family {
	return sysmon.Family{Name: name, Type: "counter", Unit: unit, Series: series}
}

func labelled(values []sysmon.Value, labels ...string) sysmon.Series {
	s := sysmon.Series{Labels: map[string]string{}, Values: values}
	for i := 0; i < len(labels); i += 2 {
		s.Labels[labels[i]] = labels[i+1]
	}
	return s
}

// node returns a recording with two CPUs, of which the second is the busier, and an
// uplink beside interfaces that count its packets again.
func node(name string, times []time.Time, receive float64) *sysmon.Recording {
	grow := func(rate float64) []sysmon.Value { return growing(times, rate) }
	return &sysmon.Recording{
		Labels: map[string]string{"node": name, "endpoint": name}, Times: times,
		Families: []sysmon.Family{
			counter(cpuFamily, "seconds",
				labelled(grow(0.25), "cpu", "0", "mode", "user"), labelled(grow(0.75), "cpu", "0", "mode", "idle"),
				labelled(grow(0.5), "cpu", "1", "mode", "softirq"), labelled(grow(0.25), "cpu", "1", "mode", "user"), labelled(grow(0.25), "cpu", "1", "mode", "iowait"), labelled(grow(0), "cpu", "1", "mode", "idle")),
			{Name: memoryFamily, Type: "gauge", Unit: "bytes", Series: []sysmon.Series{{Values: grow(0)}}},
			counter(receiveFamily, "bytes",
				labelled(grow(9e12), "device", "lo"), labelled(grow(receive/8), "device", "eth0"), labelled(grow(receive), "device", "veth1")),
			counter(transmitFamily, "bytes", labelled(grow(1), "device", "eth0")),
			counter(retransmitFamily, "", sysmon.Series{Values: grow(3)}),
			counter(energyFamily, "joules", labelled(grow(30), "zone", "package-0"), labelled(grow(20), "zone", "package-0/core"), labelled(grow(12), "zone", "package-1")),
			counter("node_other_things", "", sysmon.Series{Values: grow(1)}),
		},
	}
}

func pod(name, on string, times []time.Time) *sysmon.Recording {
	return &sysmon.Recording{
		Labels: map[string]string{"node": on, "endpoint": name}, Times: times,
		Families: []sysmon.Family{counter(retransmitFamily, "", sysmon.Series{Values: growing(times, 4)})},
	}
}

func compressed(t testing.TB, recs ...*sysmon.Recording) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if err := sysmon.WriteOpenMetrics(z, recs...); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestThrottled: the share of the periods in which a pod's CPU quota was used up, in the
// window alone; no quota and too few periods are none.
func TestThrottled(t *testing.T) {
	times := at(0, 1000, 2000, 3000)
	quota := func(perSecond, stopped float64) *sysmon.Recording {
		return &sysmon.Recording{Times: times, Families: []sysmon.Family{
			counter(quotaFamily+"periods", "", sysmon.Series{Values: growing(times, perSecond)}),
			counter(quotaFamily+"throttled_periods", "", sysmon.Series{Values: growing(times, stopped)}),
		}}
	}
	for name, tt := range map[string]struct {
		rec  *sysmon.Recording
		want float64
	}{
		"four of five": {quota(10, 8), 0.8}, "never": {quota(10, 0), 0}, "too few": {quota(1, 1), 0}, "no quota": {pod("p", "n", times), 0}, "nothing": {&sysmon.Recording{}, 0},
	} {
		if got := throttled(tt.rec, times[1], times[3]); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// runWith is a run directory with the files given, and a sample for each.
func runWith(t testing.TB, elapsed float64, settings map[string]string, files ...[]byte) (string, *result.Record) {
	t.Helper()
	dir := t.TempDir()
	rec := &result.Record{Run: result.Run{Plan: result.Plan{Warmup: 1, Settings: settings}}}
	for i, data := range files {
		s := result.Sample{
			Contender: "x", Step: "dts", Round: i + 1, Started: start, Elapsed: unit.Seconds(elapsed),
			Verdict: result.Valid, Raw: fmt.Sprintf("raw/x/%d/dts", i+1),
		}
		rec.Samples = append(rec.Samples, s)
		if data == nil {
			continue
		}
		folder := filepath.Join(dir, s.Raw)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, sysmon.SampleFile), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, rec
}

// ticks are snapshots as a run takes them: a second apart, with the marks of a
// window of three seconds at 1.4 and 4.4 s, and the last one at the stop.
func ticks(late int) []time.Time {
	return at(0+late, 1000+late, 1400+late, 2000+late, 3000+late, 4000+late, 4400+late, 4401+late)
}

func TestLoad(t *testing.T) {
	whole := compressed(t, node("node1", ticks(0), 1e6), pod("pod1", "node1", ticks(1)), node("node2", ticks(2), 8e9), pod("pod2", "node2", ticks(3)))
	traces, faults := load(t, 3, nil, whole)
	if len(faults) > 0 || len(traces) != 1 {
		t.Fatalf("%d traces, faults %v", len(traces), faults)
	}
	flat := func(v float64) []float64 { return []float64{v, v, v, v} }
	want := analysis.Trace{
		Key: result.Key{Contender: "x", Step: "dts", Round: 1},
		Nodes: []analysis.NodeTrace{
			{
				Node: "client", Times: []float64{0, 0.6, 1.6, 3}, Window: 3, CPUs: 2,
				CPU:     map[string][]float64{"user": flat(0.5), "softirq": flat(0.5), "iowait": flat(0.25)},
				Busy:    flat(1),
				Loads:   map[string][]float64{"0": flat(0.25), "1": flat(0.75)},
				Busiest: flat(0.75), Receive: flat(1e6), Transmit: flat(8), Retransmits: flat(7), Memory: flat(1000), Power: flat(42),
			},
			{
				Node: "server", Times: []float64{0, 0.6, 1.6, 3}, Window: 3, CPUs: 2,
				CPU:     map[string][]float64{"user": flat(0.5), "softirq": flat(0.5), "iowait": flat(0.25)},
				Busy:    flat(1),
				Loads:   map[string][]float64{"0": flat(0.25), "1": flat(0.75)},
				Busiest: flat(0.75), Receive: flat(8e9), Transmit: flat(8), Retransmits: flat(7), Memory: flat(1000), Power: flat(42),
			},
		},
	}
	if diff := cmp.Diff(want, traces[0], cmpopts.EquateApprox(1e-6, 1e-9)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func load(t *testing.T, elapsed float64, settings map[string]string, files ...[]byte) ([]analysis.Trace, []result.Fault) {
	t.Helper()
	dir, rec := runWith(t, elapsed, settings, files...)
	return Load(dir, rec)
}

// The slices of a sample lie all over its recording: no three seconds of it are its window.
func TestLoadSliced(t *testing.T) {
	dir, rec := runWith(t, 3, nil, compressed(t, node("node1", ticks(0), 1), node("node2", ticks(2), 1)))
	rec.Samples[0].Slices = &result.Slices{Cycles: []int{1}}
	traces, faults := Load(dir, rec)
	if len(faults) > 0 || len(traces) != 1 || len(traces[0].Nodes) != 2 {
		t.Fatalf("%+v, faults %v", traces, faults)
	}
	for _, n := range traces[0].Nodes {
		if math.Abs(n.Window-4.401) > 1e-6 || n.Times[len(n.Times)-1] > n.Window {
			t.Errorf("%s: a window of %g s, values at %v", n.Node, n.Window, n.Times)
		}
	}
}

func TestLoadCPUsOfTheSetting(t *testing.T) {
	both := compressed(t, node("node1", ticks(0), 1), node("node2", ticks(0), 1))
	traces, _ := load(t, 3, map[string]string{"cpus": "client=0,server=0-1,rest=7"}, both)
	if len(traces) != 1 {
		t.Fatal("no trace")
	}
	client, server := traces[0].Nodes[0], traces[0].Nodes[1]
	if client.CPUs != 1 || server.CPUs != 2 || math.Abs(client.Busiest[1]-0.25) > 1e-6 || client.CPU["softirq"] != nil {
		t.Errorf("client has %d CPUs %v, server %d", client.CPUs, client.CPU, server.CPUs)
	}
}

func TestLoadSameNode(t *testing.T) {
	dir, rec := runWith(t, 3, nil, compressed(t, node("node1", ticks(0), 1), node("node2", ticks(0), 1)))
	rec.Samples[0].Path = sameNode
	traces, _ := Load(dir, rec)
	if len(traces) != 1 || len(traces[0].Nodes) != 1 || traces[0].Nodes[0].Node != "client" {
		t.Errorf("a node without a part in the step has a trace: %+v", traces)
	}
}

func TestLoadWithoutMarks(t *testing.T) {
	recs := compressed(t, node("client", at(0, 1000, 2000, 3000), 1), node("server", at(0, 1000, 2000, 3000), 1))
	traces, faults := load(t, 1.5, nil, recs)
	if len(faults) > 0 || len(traces) != 1 {
		t.Fatalf("%d traces, faults %v", len(traces), faults)
	}
	if diff := cmp.Diff([]float64{0, 1, 2}, traces[0].Nodes[0].Times); diff != "" || traces[0].Nodes[0].Window != 1.5 {
		t.Errorf("the window does not begin after the warm-up: %v", traces[0].Nodes[0])
	}
}

func TestLoadGaps(t *testing.T) {
	rec := node("node1", ticks(0), 8)
	receive := rec.Families[2].Series
	receive[1].Values[4] = sysmon.Absent
	receive[1].Values[6] = 0 // the interface was made anew
	traces, _ := load(t, 3, nil, compressed(t, rec))
	got := traces[0].Nodes[0].Receive
	nan := math.NaN()
	if diff := cmp.Diff([]float64{8, 8, nan, nan}, got, cmpopts.EquateNaNs(), cmpopts.EquateApprox(1e-6, 0)); diff != "" {
		t.Errorf("gaps:\n%s", diff)
	}
}

func TestLoadFaults(t *testing.T) {
	whole := compressed(t, node("node1", ticks(0), 1))
	traces, faults := load(t, 3, nil, whole, []byte("no zstd"), whole[:len(whole)/2], nil, whole)
	if len(traces) != 2 {
		t.Errorf("%d traces, want those of the two sound files", len(traces))
	}
	var files []string
	for _, f := range faults {
		files = append(files, f.File)
		if !strings.Contains(f.Text, "has no trace") {
			t.Errorf("fault %q", f.Text)
		}
	}
	if diff := cmp.Diff([]string{"raw/x/2/dts/metrics.om.zst", "raw/x/3/dts/metrics.om.zst"}, files); diff != "" {
		t.Errorf("faults:\n%s", diff)
	}
	if _, faults := Load(filepath.Join(t.TempDir(), "gone"), &result.Record{}); len(faults) != 1 {
		t.Errorf("no folder: faults %v", faults)
	}
}

func TestLoadStaysInside(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, compressed(t, node("node1", ticks(0), 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	dir, rec := runWith(t, 3, nil, nil, nil)
	if err := os.MkdirAll(filepath.Join(dir, rec.Samples[0].Raw), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, rec.Samples[0].Raw, sysmon.SampleFile)); err != nil {
		t.Fatal(err)
	}
	rec.Samples[1].Raw = "../" + filepath.Base(filepath.Dir(outside))
	if traces, faults := Load(dir, rec); len(traces) != 0 || len(faults) != 2 {
		t.Errorf("%d traces and faults %v from outside the run", len(traces), faults)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(compressed(f, node("node1", ticks(0), 1), pod("pod1", "node1", ticks(1))))
	f.Add([]byte("no zstd"))
	run := &result.Run{}
	z := newDecoder()
	defer z.Close()
	f.Fuzz(func(t *testing.T, data []byte) {
		recs, err := parse(z, io.LimitReader(bytes.NewReader(data), 1<<20))
		if err != nil {
			return
		}
		for _, n := range nodes(recs, run, &result.Sample{Started: start, Elapsed: 3}) {
			for _, values := range [][]float64{n.Busiest, n.Receive, n.Transmit, n.Retransmits, n.Memory, n.Power} {
				if values != nil && len(values) != len(n.Times) {
					t.Fatalf("%d values for %d times", len(values), len(n.Times))
				}
			}
		}
	})
}

// FuzzFilter feeds the text itself, which compression hides from the fuzzer.
func FuzzFilter(f *testing.F) {
	f.Add([]byte("# TYPE node_cpu_seconds counter\nnode_cpu_seconds_total{cpu=\"0\"} 1 1\nnode_other 1 1\n# EOF\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		kept, err := filter(bytes.NewReader(data))
		if err == nil && len(kept) > len(data)+1 {
			t.Fatalf("%d bytes became %d", len(data), len(kept))
		}
		recs, err := sysmon.ReadOpenMetrics(bytes.NewReader(kept))
		if err == nil {
			nodes(recs, &result.Run{}, &result.Sample{Started: start, Elapsed: 1})
		}
	})
}

// BenchmarkLoad reads 100 samples of a minute, of two nodes and their pods.
func BenchmarkLoad(b *testing.B) {
	ms := []int{1400, 61400}
	for i := range 75 {
		ms = append(ms, 1000*i)
	}
	slices.Sort(ms)
	file := compressed(b, node("node1", at(ms...), 1e9), pod("pod1", "node1", at(ms...)), node("node2", at(ms...), 8e9), pod("pod2", "node2", at(ms...)))
	dir, rec := runWith(b, 60, nil, slices.Repeat([][]byte{file}, 100)...)
	for b.Loop() {
		if traces, faults := Load(dir, rec); len(traces) != 100 || len(faults) > 0 {
			b.Fatal(len(traces), faults)
		}
	}
}
