// Package analysistest makes runs for the tests of the analysis. Only tests
// may import it. Next: analysistest.go.
package analysistest

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Synthetic returns a run with three contenders, two steps and six rounds. One sample is
// invalid, one is missing, and the UDP step loses too many datagrams.
func Synthetic() *result.Record {
	contenders := []string{"host", "calico-noencap", "flannel-vxlan"}
	rec := &result.Record{Run: result.Run{
		Schema: result.RunSchema, ID: "synthetic", Arena: "lab", Baseline: "host",
		Tool:    result.Tool{Name: "cnibench", Version: "test"},
		Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Plan: result.Plan{
			Suite: "throughput", Rounds: 6, Duration: 10,
			Steps: []result.Step{
				{ID: "dts", Workload: "tcp_stream", Path: "pod"},
				{ID: "dus", Workload: "udp_stream", Path: "pod"},
			},
		},
		Unsupported: []result.Unsupported{{Contender: "ipvlan-l2", Reason: "no ipvlan", Remedy: "another kernel"}},
		Environment: result.Environment{"kernel.release": "6.18"},
	}}
	noise := []float64{1.00, 1.02, 0.99, 1.01, 0.98, 1.03}
	order := 0
	for i, contender := range contenders {
		rec.Run.Plan.Contenders = append(rec.Run.Plan.Contenders, result.Entry{ID: contender, Underlay: "switch"})
		rec.Run.Contenders = append(rec.Run.Contenders, result.ContenderInfo{ID: contender})
		scale := []float64{1, 0.9, 0.5}[i]
		for round := 1; round <= 6; round++ {
			n := noise[(round+i)%6]
			for _, s := range []result.Sample{
				{Step: result.SetupStep, Workload: result.SetupStep, Metrics: map[string]float64{"setup_time": 0.5 + 0.1*float64(i)}},
				{Step: "dts", Workload: "tcp_stream", Metrics: map[string]float64{"goodput": 17e9 * scale * n, "retransmits": 0, "cpu_per_gbit": 0.05 / scale / n}},
				{Step: "dus", Workload: "udp_stream", Metrics: map[string]float64{"goodput": 2e9 * scale * n, "loss": 0.02 + 0.1*float64(i)}},
			} {
				order++
				s.Schema, s.Contender, s.Kernel, s.Underlay, s.Path = result.SampleSchema, contender, "6.18", "switch", "pod"
				s.Round, s.Order, s.Elapsed, s.Verdict = round, order, 10, result.Valid
				switch {
				case contender == "calico-noencap" && s.Step == "dus" && round == 6:
					continue // interrupted
				case contender == "flannel-vxlan" && s.Step == "dts" && round == 2:
					s.Verdict = result.Invalid
					s.Reasons = []result.Reason{{Code: "cpu_steal", Text: "the hypervisor took 25 % of the CPU time of client and server"}}
				}
				if s.Step == "dus" {
					s.Notes = []result.Reason{{Code: "multi_stream_processes", Text: "one process pair a stream"}}
				}
				rec.Samples = append(rec.Samples, s)
			}
		}
	}
	rec.Faults = []result.Fault{{File: "samples.jsonl", Line: 54, Text: "cut short; it does not count"}}
	return rec
}

// ValidSample returns a valid sample.
func ValidSample(contender string, round int, metrics map[string]float64) result.Sample {
	return result.Sample{Contender: contender, Step: "dts", Workload: "tcp_stream", Path: "pod",
		Round: round, Elapsed: 10, Verdict: result.Valid, Metrics: metrics}
}

func Find(t *testing.T, r *analysis.Report, contender, metric string) analysis.Result {
	t.Helper()
	for _, res := range r.Results {
		if res.Contender == contender && res.Metric == metric {
			return res
		}
	}
	t.Fatalf("no %s of %s in %d results", metric, contender, len(r.Results))
	return analysis.Result{}
}

// Histogram returns a histogram with n values of the given latency in microseconds.
func Histogram(t *testing.T, us, n int64) *hdrhistogram.Histogram {
	t.Helper()
	h := hdrhistogram.New(1, int64(10*time.Second), 3)
	if err := h.RecordValues(us*1000, n); err != nil {
		t.Fatal(err)
	}
	return h
}

var Update = flag.Bool("update", false, "write the golden files")

// Record makes a run with the baseline "host" from samples.
func Record(samples ...result.Sample) *result.Record {
	return &result.Record{Run: result.Run{Baseline: "host"}, Samples: samples}
}

// Over returns a sample for each round, which a function of the round makes.
func Over(rounds int, contender string, metrics func(round int) map[string]float64) []result.Sample {
	var list []result.Sample
	for round := 1; round <= rounds; round++ {
		list = append(list, ValidSample(contender, round, metrics(round)))
	}
	return list
}

func Always(metrics map[string]float64) func(int) map[string]float64 {
	return func(int) map[string]float64 { return metrics }
}

// Tail returns a histogram with n values of one latency, and further values of another, in
// microseconds.
func Tail(t *testing.T, us, n, tailUS, more int64) *hdrhistogram.Histogram {
	t.Helper()
	h := Histogram(t, us, n)
	h.Merge(Histogram(t, tailUS, more))
	return h
}

func Invalid(contender string, round int, code, text string) result.Sample {
	s := ValidSample(contender, round, nil)
	s.Verdict, s.Reasons = result.Invalid, []result.Reason{{Code: code, Text: text}}
	return s
}

// Noisy returns a run with that many rounds. slow is the factor of flannel-vxlan's goodput,
// and machine the factor of all figures of the run.
func Noisy(seed uint64, rounds int, slow, machine, noise float64) *result.Record {
	rng := rand.New(rand.NewPCG(seed, 1))
	rec := &result.Record{Run: result.Run{
		ID: fmt.Sprint("run-", seed), Arena: "lab", Baseline: "host", Tool: result.Tool{Name: "cnibench", Version: "test"},
		Plan: result.Plan{
			Suite: "quick", Rounds: rounds, Duration: 1.5, Settings: map[string]string{"mtu": "1500"},
			Steps: []result.Step{
				{ID: "dts", Workload: "tcp_stream", Path: "pod", Params: map[string]any{"streams": 1.0}},
				{ID: "http", Workload: "http_rate", Path: "pod", Params: map[string]any{"rate": 5003.0}},
			},
		},
		Environment: result.Environment{"kernel.release": "6.18"},
	}}
	for i, contender := range []string{"host", "macvlan", "calico-noencap", "flannel-vxlan"} {
		rec.Run.Plan.Contenders = append(rec.Run.Plan.Contenders, result.Entry{ID: contender, Underlay: "switch"})
		rec.Run.Contenders = append(rec.Run.Contenders, result.ContenderInfo{ID: contender, Version: "1"})
		scale := 1 - 0.15*float64(i)
		if contender == "flannel-vxlan" {
			scale *= slow
		}
		for round := 1; round <= rounds; round++ {
			n := func() float64 { return math.Exp(noise*rng.NormFloat64()) * machine }
			for _, s := range []result.Sample{
				{Step: "dts", Workload: "tcp_stream", Metrics: map[string]float64{"goodput": 30e9 * scale * n(), "cpu_per_gbit": 0.05 / scale / n(), "retransmits": 0}},
				{Step: "http", Workload: "http_rate", Metrics: map[string]float64{"rate": 5003, "latency_p50": 70e-6 / scale / n(), "latency_p99": 200e-6 / scale / n()}},
			} {
				s.Contender, s.Kernel, s.Underlay, s.Path, s.Round, s.Verdict = contender, "6.18", "switch", "pod", round, result.Valid
				rec.Samples = append(rec.Samples, s)
			}
		}
	}
	return rec
}

func Share(v float64) *float64 { return &v }

// PacedRun returns a run of six rounds at a constant rate (1/s) in which x uses less CPU. If
// tick is "y", the kernel accounts CPU time by a tick of 250 Hz.
func PacedRun(rate float64, tick string) *result.Record {
	rec := Record(append(
		Over(6, "host", Always(map[string]float64{"rate": rate, "cpu_per_request": 2e-4})),
		Over(6, "x", Always(map[string]float64{"rate": rate + 1, "cpu_per_request": 1e-4}))...)...)
	rec.Run.Environment = result.Environment{analysis.TickKey: tick, analysis.HzKey: "250"}
	rec.Run.Plan.Steps = []result.Step{{ID: "dts", Workload: "http_rate", Params: map[string]any{"rate": rate}}}
	return rec
}

// CheckFindings compares the findings of a code: their severities, places and marks, and the
// numbers in their texts, whatever the words are. The texts of want may hold nothing but
// numbers.
func CheckFindings(t *testing.T, all []analysis.Finding, code string, want []analysis.Finding) {
	t.Helper()
	var got []analysis.Finding
	for _, f := range all {
		if f.Code != code {
			continue
		}
		if f.Next == "" {
			t.Errorf("no next step: %+v", f)
		}
		got = append(got, analysis.Finding{Severity: f.Severity, Contender: f.Contender, Step: f.Step, Round: f.Round,
			Text: Numbers(f.Text), Excluded: f.Excluded, Note: f.Note})
	}
	want = analysis.ChangeEach(want, func(f *analysis.Finding) { f.Text = Numbers(f.Text) })
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", code, diff)
	}
}

var number = regexp.MustCompile(`\d+(\.\d+)?`)

// Numbers returns the numbers in a text, separated by blanks.
func Numbers(text string) string { return strings.Join(number.FindAllString(text, -1), " ") }

type Cost struct{ Goodput, CPU, Memory float64 }

// Costly returns a run of eight rounds with contenders of given costs and relative noise.
func Costly(noise float64, costs map[string]Cost) *result.Record {
	r := rand.New(rand.NewPCG(3, 4))
	var samples []result.Sample
	for _, c := range analysis.SortedKeys(costs) {
		samples = append(samples, Over(8, c, func(int) map[string]float64 {
			n := func() float64 { return 1 + noise*r.NormFloat64() }
			return map[string]float64{
				"goodput": costs[c].Goodput * n(), "cpu_per_gbit": costs[c].CPU * n(),
				"cpu_per_gbit_published": costs[c].CPU / 2 * n(), "memory_used": costs[c].Memory * n(),
			}
		})...)
	}
	rec := Record(samples...)
	rec.Run.Plan.Steps = []result.Step{{ID: "dts", Workload: "tcp_stream"}}
	return rec
}

// StalledRun returns a run of six rounds in ten slices each. The median network time is 30 µs
// for host and 60 µs for vxlan. In a third of the slices the machine was away, and in one of
// each round for host alone: a median of such a slice is 900 µs.
func StalledRun(t *testing.T) *result.Record {
	const p50 = "network_time_p50"
	var samples []result.Sample
	for round := 1; round <= 6; round++ {
		for contender, us := range map[string]int64{"host": 30, "vxlan": 60} {
			s := ValidSample(contender, round, map[string]float64{p50: float64(us) * 1e-6})
			s.Histograms = map[string]*hdrhistogram.Histogram{"network_time": Tail(t, us, 700, 900, 300)}
			s.Slices = &result.Slices{Metrics: map[string][]float64{}}
			for cycle := 1; cycle <= 10; cycle++ {
				away := cycle%3 == 0 || cycle == round && contender == "host"
				s.Slices.Cycles = append(s.Slices.Cycles, cycle)
				s.Slices.Metrics[p50] = append(s.Slices.Metrics[p50], map[bool]float64{false: float64(us) * 1e-6, true: 900e-6}[away])
			}
			samples = append(samples, s)
		}
	}
	return Record(samples...)
}

// Seconds returns a trace of a sample, with what its server received in each second of the
// window.
func Seconds(contender string, round int, received ...float64) analysis.Trace {
	n := analysis.NodeTrace{Node: "server", Window: float64(len(received)), Receive: received, CPUs: 1}
	for i := range received {
		n.Times = append(n.Times, float64(i+1))
	}
	return analysis.Trace{Key: result.Key{Contender: contender, Step: "dts", Round: round}, Nodes: []analysis.NodeTrace{n}}
}

// Around returns n values near a level.
func Around(level float64, n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = level * (1 + 0.01*math.Sin(float64(7*i)))
	}
	return values
}
