package analysis_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testutil/analysistest"
)

func efficiencyOf(t *testing.T, r *analysis.Report, contender string) analysis.Efficiency {
	t.Helper()
	i := slices.IndexFunc(r.Efficiency, func(x analysis.Efficiency) bool { return x.Contender == contender })
	if i < 0 {
		t.Fatalf("no efficiency of %s", contender)
	}
	return r.Efficiency[i]
}

func TestEfficiency(t *testing.T) {
	rec := analysistest.Record(append(
		analysistest.Over(6, "host", func(round int) map[string]float64 {
			return map[string]float64{"goodput": 30e9, "cpu_per_gbit": 0.05, "cpu_per_gbit_published": 0.025, "memory_used": 1e9 + float64(round)}
		}),
		analysistest.Over(6, "x", func(round int) map[string]float64 {
			return map[string]float64{"goodput": 20e9 + 1e9*float64(round), "cpu_per_gbit": 0.1,
				"cpu_per_gbit_published": 0.05 - 0.005*float64(round), "memory_used": 1.2e9 + float64(round)}
		})...)...)
	got := efficiencyOf(t, report.Analyse(rec, analysis.Options{}), "x")
	// The most CPU is of round 4 (24 × 0.03 = 0.72) and rounds 1 (21 × 0.045 = 0.945); the best goodput of round 6.
	published := 21.0 * 0.045 / 26
	want := analysis.Efficiency{
		Contender: "x", Step: "dts", Path: "pod", Frontier: true,
		Goodput:        analysis.Estimate{Median: 23.5e9, CI: &analysis.Interval{21e9, 26e9}},
		CPUPerGbit:     &analysis.Estimate{Median: 0.1, CI: &analysis.Interval{0.1, 0.1}},
		Published:      &published,
		MemoryOverhead: &analysis.Estimate{Median: 2e8, CI: &analysis.Interval{2e8, 2e8}},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	host := efficiencyOf(t, report.Analyse(rec, analysis.Options{}), "host")
	if host.MemoryOverhead != nil || host.Frontier {
		t.Errorf("the baseline: %+v", host)
	}
}

// Hosts have no Services: the memory of such a step is compared with the
// baseline's at the same load without.
func TestMemoryOverOfServices(t *testing.T) {
	rec := analysistest.Record(append(
		analysistest.Over(2, "host", analysistest.Always(map[string]float64{"goodput": 1e9, "memory_used": 1e9})),
		analysistest.Over(2, "x", analysistest.Always(map[string]float64{"goodput": 1e9, "memory_used": 1.5e9}))...)...)
	for i := range rec.Samples[2:] {
		rec.Samples[2+i].Step = "sts"
	}
	params := map[string]any{"streams": 1.0, "odd": []any{1.0}}
	rec.Run.Plan.Steps = []result.Step{
		{ID: "dtm", Workload: "tcp_stream", Path: "pod"},
		{ID: "dts", Workload: "tcp_stream", Path: "pod", Params: params},
		{ID: "sts", Workload: "tcp_stream", Path: "service", Params: params},
	}
	if got := efficiencyOf(t, report.Analyse(rec, analysis.Options{}), "x").MemoryOverhead; got == nil || got.Median != 5e8 {
		t.Errorf("memory over the baseline: %+v", got)
	}
}

func TestFrontier(t *testing.T) {
	r := report.Analyse(analysistest.Costly(0, map[string]analysistest.Cost{
		"host": {Goodput: 40e9, CPU: 0.01, Memory: 1e9}, "fast": {Goodput: 30e9, CPU: 0.1, Memory: 1e9}, "cheap": {Goodput: 20e9, CPU: 0.05, Memory: 1e9},
		"slow": {Goodput: 20e9, CPU: 0.1, Memory: 1e9}, "dear": {Goodput: 30e9, CPU: 0.2, Memory: 1e9}, "twin": {Goodput: 30e9, CPU: 0.1, Memory: 1e9},
	}), analysis.Options{})
	var on []string
	for _, x := range r.Efficiency {
		if x.Frontier {
			on = append(on, x.Contender)
		}
	}
	slices.Sort(on)
	if diff := cmp.Diff([]string{"cheap", "fast", "twin"}, on); diff != "" {
		t.Errorf("frontier:\n%s", diff)
	}
}

// User and system only is a lower bound: nobody is ranked by it, in tiers or on
// a frontier.
func TestEfficiencyLowerBound(t *testing.T) {
	rec := analysistest.Costly(0.02, map[string]analysistest.Cost{
		"host": {Goodput: 38e9, CPU: 0.05, Memory: 1e9}, "a": {Goodput: 37e9, CPU: 0.052, Memory: 1e9}, "b": {Goodput: 36e9, CPU: 0.049, Memory: 1e9}, "c": {Goodput: 12e9, CPU: 0.2, Memory: 1e9}, "d": {Goodput: 12.5e9, CPU: 0.19, Memory: 1e9},
	})
	for i := range rec.Samples {
		m := rec.Samples[i].Metrics
		m["cpu_per_gbit_user_system"] = m["cpu_per_gbit"]
		delete(m, "cpu_per_gbit")
		delete(m, "cpu_per_gbit_published")
	}
	r := report.Analyse(rec, analysis.Options{})
	a, c := efficiencyOf(t, r, "a"), efficiencyOf(t, r, "c")
	if a.Frontier || c.Frontier || a.CPUPerGbit != nil || a.UserSystem == nil {
		t.Errorf("a: %+v\nc: %+v", a, c)
	}
	if got := analysistest.Find(t, r, "a", "cpu_per_gbit_user_system"); got.Ranked || got.Tier != 0 {
		t.Errorf("a lower bound is ranked: %+v", got)
	}
}
