package cost_test

import (
	"fmt"
	"math"
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
	got := efficiencyOf(t, report.Analyse(rec, analysis.Options{WattsPerCore: 5}), "x")
	// The most CPU is of round 4 (24 × 0.03 = 0.72) and rounds 1 (21 × 0.045 = 0.945); the best goodput of round 6.
	published := 21.0 * 0.045 / 26
	want := analysis.Efficiency{
		Contender: "x", Step: "dts", Path: "pod", Frontier: true,
		Goodput:        analysis.Estimate{Median: 23.5e9, CI: &analysis.Interval{21e9, 26e9}},
		CPUPerGbit:     &analysis.Estimate{Median: 0.1, CI: &analysis.Interval{0.1, 0.1}},
		Published:      &published,
		MemoryOverhead: &analysis.Estimate{Median: 2e8, CI: &analysis.Interval{2e8, 2e8}},
		Energy:         &analysis.Energy{JoulesPerGB: 4, Basis: "estimate: 5 W for each busy core, as given; nothing was measured"},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	host := efficiencyOf(t, report.Analyse(rec, analysis.Options{}), "host")
	if host.MemoryOverhead != nil || host.Energy != nil || host.Frontier {
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

func TestEnergyMeasured(t *testing.T) {
	rec := analysistest.Record(analysistest.Over(2, "x", analysistest.Always(map[string]float64{"goodput": 8e9, "cpu_per_gbit": 0.1}))...)
	var traces []analysis.Trace
	for round := 1; round <= 2; round++ {
		trace := analysistest.Seconds("x", round, analysistest.Around(8e9, 10)...)
		trace.Nodes[0].Power = slices.Repeat([]float64{40}, 10)
		client := trace.Nodes[0]
		client.Node, client.Power = "client", slices.Repeat([]float64{20}, 10)
		trace.Nodes = append(trace.Nodes, client)
		traces = append(traces, trace)
	}
	for arena, want := range map[string]float64{"kube": 60, "lab": 30} {
		rec.Run.Arena = arena
		got := efficiencyOf(t, report.Analyse(rec, analysis.Options{Traces: traces, WattsPerCore: 5}), "x").Energy
		if got == nil || !got.Measured || math.Abs(got.JoulesPerGB-want) > 1e-9 {
			t.Errorf("%s: %+v, want %v J/GB measured", arena, got, want)
		}
	}
	// Who takes turns with others has no power of its own.
	for i := range rec.Samples {
		rec.Samples[i].Slices = &result.Slices{Cycles: []int{1}}
	}
	if got := efficiencyOf(t, report.Analyse(rec, analysis.Options{Traces: traces}), "x").Energy; got != nil {
		t.Errorf("by turns: %+v", got)
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
	r := report.Analyse(rec, analysis.Options{Fleet: &analysis.FleetSize{Nodes: 1, Gbps: 1}})
	a, c := efficiencyOf(t, r, "a"), efficiencyOf(t, r, "c")
	if a.Frontier || c.Frontier || a.Cluster != 1 || c.Cluster != 2 || a.CPUPerGbit != nil || a.UserSystem == nil {
		t.Errorf("a: %+v\nc: %+v", a, c)
	}
	if got := analysistest.Find(t, r, "a", "cpu_per_gbit_user_system"); got.Ranked || got.Tier != 0 {
		t.Errorf("a lower bound is ranked: %+v", got)
	}
	if len(r.Fleet.Rows) != 0 {
		t.Error("a lower bound was carried over to a fleet")
	}
}

func TestClusters(t *testing.T) {
	grouped := map[string]analysistest.Cost{
		"host": {Goodput: 38e9, CPU: 0.05, Memory: 1e9}, "a": {Goodput: 37e9, CPU: 0.052, Memory: 1e9}, "b": {Goodput: 36e9, CPU: 0.051, Memory: 1e9},
		"c": {Goodput: 12e9, CPU: 0.2, Memory: 1e9}, "d": {Goodput: 12.5e9, CPU: 0.19, Memory: 1e9}, "e": {Goodput: 11.8e9, CPU: 0.21, Memory: 1e9},
	}
	clusters := func(rec *result.Record) map[string]int {
		numbers := map[string]int{}
		for _, x := range report.Analyse(rec, analysis.Options{}).Efficiency {
			numbers[x.Contender] = x.Cluster
		}
		return numbers
	}
	want := map[string]int{"host": 0, "a": 1, "b": 1, "c": 2, "d": 2, "e": 2} // the baseline is no choice
	if diff := cmp.Diff(want, clusters(analysistest.Costly(0.02, grouped))); diff != "" {
		t.Errorf("two groups:\n%s", diff)
	}
	if diff := cmp.Diff(clusters(analysistest.Costly(0.02, grouped)), clusters(analysistest.Costly(0.02, grouped))); diff != "" {
		t.Errorf("the same run gives other groups:\n%s", diff)
	}
	alike := map[string]analysistest.Cost{}
	for i := range 8 {
		alike[fmt.Sprint("c", i)] = analysistest.Cost{Goodput: 20e9, CPU: 0.1, Memory: 1e9}
	}
	for contender, number := range clusters(analysistest.Costly(0.1, alike)) {
		if number != 0 {
			t.Errorf("%s is in cluster %d of contenders that are alike", contender, number)
		}
	}
	delete(grouped, "a")
	delete(grouped, "d")
	delete(grouped, "e")
	for contender, number := range clusters(analysistest.Costly(0.02, grouped)) {
		if number != 0 {
			t.Errorf("%s is in cluster %d of three contenders", contender, number)
		}
	}
}

func TestFleet(t *testing.T) {
	rec := analysistest.Costly(0, map[string]analysistest.Cost{"host": {Goodput: 40e9, CPU: 0.01, Memory: 1e9}, "x": {Goodput: 20e9, CPU: 0.05, Memory: 1.5e9}, "y": {Goodput: 1e9, CPU: 0.02, Memory: 1e9}})
	opt := analysis.Options{WattsPerCore: 10, Fleet: &analysis.FleetSize{Nodes: 100, Gbps: 2}, Prices: &analysis.Prices{Currency: "EUR", CoreMonth: 20, GiBMonth: 2, KWh: 0.5}}
	got := report.Analyse(rec, opt).Fleet
	memory, power := 100*0.5e9, 0.05*10*200.0
	month := 10*20 + memory/(1<<30)*2 + power/1000*730*0.5
	row := got.Rows[slices.IndexFunc(got.Rows, func(r analysis.FleetRow) bool { return r.Contender == "x" })]
	want := analysis.FleetRow{Contender: "x", Cores: analysis.Estimate{Median: 10, CI: &analysis.Interval{10, 10}}, Memory: &memory, Power: &power, Month: &month, Reached: true}
	if diff := cmp.Diff(want, row, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got.Step != "dts" || got.Currency != "EUR" || got.Rows[0].Contender != "host" || got.Rows[1].Reached {
		t.Errorf("fleet: %+v", got)
	}
	rec.Run.Arena = "lab"
	if row := report.Analyse(rec, opt).Fleet.Rows[2]; row.Memory != nil {
		t.Errorf("memory of nodes that are one machine: %v", *row.Memory)
	}
	rec.Run.Arena = "kube"
	rec.Samples[0].Notes = []result.Reason{{Code: analysis.NodesShareNote, Text: "two of the nodes are one machine"}}
	if row := report.Analyse(rec, opt).Fleet.Rows[2]; row.Memory != nil {
		t.Errorf("memory of nodes that share a machine is multiplied: %v", *row.Memory)
	}
	opt.Fleet.Step = "other"
	if got := report.Analyse(rec, opt).Fleet; len(got.Rows) != 0 {
		t.Errorf("a step without figures: %+v", got)
	}
	if got := report.Analyse(rec, analysis.Options{}).Fleet; got != nil {
		t.Errorf("no fleet was asked for: %+v", got)
	}
}
