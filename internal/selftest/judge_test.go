package selftest

import (
	"testing"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/result"
)

// Each trial passes on the truth and fails on what a broken instrument would find.
func TestJudge(t *testing.T) {
	ratio := func(r, low, high float64) *analysis.Comparison {
		return &analysis.Comparison{Ratio: r, CI: &analysis.Interval{low, high}}
	}
	truth := func() (*result.Record, *analysis.Report) {
		rec := &result.Record{
			Run:     result.Run{Environment: result.Environment{"check.mtu.narrow.path": "1400", "check.mtu.twin.path": "1500"}},
			Samples: []result.Sample{{Contender: "host", Slices: &result.Slices{Cycles: []int{1, 1, 3}, Disturbed: []int{2}}}},
		}
		return rec, &analysis.Report{Results: []analysis.Result{
			{Contender: "twin", Step: bulkStep, Metric: result.Goodput, VsBaseline: ratio(1.01, 0.97, 1.05)},
			{Contender: "twin", Step: requestStep, Metric: "network_time_p50", VsBaseline: ratio(0.98, 0.97, 0.99)},
			{Contender: "capped", Step: bulkStep, Metric: result.Goodput, Median: 957e6},
			{Contender: "lossy", Step: datagramStep, Metric: result.Loss, Median: 0.0195},
			{Contender: "slow", Step: requestStep, Metric: "network_time_p50", VsBaseline: ratio(1.4, 1.2, 1.6)},
			{Contender: "host", Step: delayStep, Metric: "network_time_p50", Median: 50e-6},
			{Contender: "delayed", Step: delayStep, Metric: "network_time_p50", Median: 3.5e-3},
			{Contender: "host", Step: stallStep, Metric: latencyP95, Median: 7.6e-3},
		}}
	}
	conditions := Conditions{Baseline: "host", MTU: 1500}
	rec, report := truth()
	if r := conditions.Judge(rec, report); !r.Passed {
		t.Errorf("the truth is not found: %+v", r.Trials)
	}
	for name, spoil := range map[string]func(*result.Record, *analysis.Report){
		"twins: goodput":          func(_ *result.Record, r *analysis.Report) { r.Results[0].VsBaseline = ratio(1.1, 1.05, 1.2) },
		"twins: network_time_p50": func(_ *result.Record, r *analysis.Report) { r.Results[1].VsBaseline = ratio(1, 0.5, 2) },
		"rate":                    func(_ *result.Record, r *analysis.Report) { r.Results[2].Median = 1.1e9 },
		"loss":                    func(_ *result.Record, r *analysis.Report) { r.Results[3].Median = 0 },
		"work on the path":        func(_ *result.Record, r *analysis.Report) { r.Results[4].VsBaseline = ratio(1.2, 0.9, 1.6) },
		"delay":                   func(_ *result.Record, r *analysis.Report) { r.Results[6].Median = 1e-3 },
		"stalls":                  func(_ *result.Record, r *analysis.Report) { r.Results[7].Median = 60e-6 }, // as of a closed loop
		"packet size":             func(rec *result.Record, _ *analysis.Report) { rec.Run.Environment["check.mtu.narrow.path"] = "1500" },
		"busy neighbour":          func(rec *result.Record, _ *analysis.Report) { rec.Samples[0].Slices.Disturbed = nil },
	} {
		rec, report := truth()
		spoil(rec, report)
		r := conditions.Judge(rec, report)
		for _, trial := range r.Trials {
			if trial.Passed == (trial.Name == name) {
				t.Errorf("with a wrong %s: %s passed: %v", name, trial.Name, trial.Passed)
			}
		}
		if r.Passed {
			t.Errorf("passed with a wrong %s", name)
		}
	}
	rec, _ = truth()
	rec.Samples[0].Notes = []result.Reason{{Code: "disturbed_cycles"}}
	if found := conditions.neighbour(rec).Found; found != "1 of 3 cycles left out; 1 step had too few quiet cycles, and used all" {
		t.Errorf("on a machine that others keep busy: %s", found)
	}
	rec, report = truth()
	noFaults := Conditions{Baseline: "host", NoFaults: "not allowed", NoNeighbour: "not watched"}
	if r := noFaults.Judge(rec, &analysis.Report{Results: append(report.Results[:2:2], report.Results[7])}); !r.Passed {
		t.Errorf("what can't be planted fails the self-test: %+v", r.Trials)
	}
	if n := len(noFaults.Contenders(&contender.Contender{ID: "this"})); n != 1 {
		t.Errorf("%d copies without faults, want the twin", n)
	}
	rec, _ = truth()
	if r := conditions.Judge(rec, &analysis.Report{}); r.Passed {
		t.Error("passed without figures")
	}
}
