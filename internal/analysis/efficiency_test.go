package analysis

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cnibench/cnibench/internal/result"
)

type cost struct{ goodput, cpu, memory float64 }

// costly is a run of eight rounds with contenders at given costs and so much
// relative noise.
func costly(noise float64, costs map[string]cost) *result.Record {
	r := rand.New(rand.NewPCG(3, 4))
	var samples []result.Sample
	for _, c := range sortedKeys(costs) {
		samples = append(samples, over(8, c, func(int) map[string]float64 {
			n := func() float64 { return 1 + noise*r.NormFloat64() }
			return map[string]float64{
				"goodput": costs[c].goodput * n(), "cpu_per_gbit": costs[c].cpu * n(),
				"cpu_per_gbit_published": costs[c].cpu / 2 * n(), "memory_used": costs[c].memory * n(),
			}
		})...)
	}
	rec := record(samples...)
	rec.Run.Plan.Steps = []result.Step{{ID: "dts", Workload: "tcp_stream"}}
	return rec
}

func efficiencyOf(t *testing.T, r *Report, contender string) Efficiency {
	t.Helper()
	i := slices.IndexFunc(r.Efficiency, func(x Efficiency) bool { return x.Contender == contender })
	if i < 0 {
		t.Fatalf("no efficiency of %s", contender)
	}
	return r.Efficiency[i]
}

func TestEfficiency(t *testing.T) {
	rec := record(append(
		over(6, "host", func(round int) map[string]float64 {
			return map[string]float64{"goodput": 30e9, "cpu_per_gbit": 0.05, "cpu_per_gbit_published": 0.025, "memory_used": 1e9 + float64(round)}
		}),
		over(6, "x", func(round int) map[string]float64 {
			return map[string]float64{"goodput": 20e9 + 1e9*float64(round), "cpu_per_gbit": 0.1,
				"cpu_per_gbit_published": 0.05 - 0.005*float64(round), "memory_used": 1.2e9 + float64(round)}
		})...)...)
	got := efficiencyOf(t, Assemble(rec, Options{WattsPerCore: 5}), "x")
	// The most CPU is of round 4 (24 × 0.03 = 0.72) and rounds 1 (21 × 0.045 = 0.945); the best goodput of round 6.
	published := 21.0 * 0.045 / 26
	want := Efficiency{
		Contender: "x", Step: "dts", Path: "pod", Frontier: true,
		Goodput:        Estimate{Median: 23.5e9, CI: &Interval{21e9, 26e9}},
		CPUPerGbit:     &Estimate{Median: 0.1, CI: &Interval{0.1, 0.1}},
		Published:      &published,
		MemoryOverhead: &Estimate{Median: 2e8, CI: &Interval{2e8, 2e8}},
		Energy:         &Energy{JoulesPerGB: 4, Basis: "estimate: 5 W for each busy core, as given; nothing was measured"},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	host := efficiencyOf(t, Assemble(rec, Options{}), "host")
	if host.MemoryOverhead != nil || host.Energy != nil || host.Frontier {
		t.Errorf("the baseline: %+v", host)
	}
}

// Hosts have no Services: the memory of such a step is compared with the
// baseline's at the same load without.
func TestMemoryOverOfServices(t *testing.T) {
	rec := record(append(
		over(2, "host", always(map[string]float64{"goodput": 1e9, "memory_used": 1e9})),
		over(2, "x", always(map[string]float64{"goodput": 1e9, "memory_used": 1.5e9}))...)...)
	for i := range rec.Samples[2:] {
		rec.Samples[2+i].Step = "sts"
	}
	params := map[string]any{"streams": 1.0, "odd": []any{1.0}}
	rec.Run.Plan.Steps = []result.Step{
		{ID: "dtm", Workload: "tcp_stream", Path: "pod"},
		{ID: "dts", Workload: "tcp_stream", Path: "pod", Params: params},
		{ID: "sts", Workload: "tcp_stream", Path: "service", Params: params},
	}
	if got := efficiencyOf(t, Assemble(rec, Options{}), "x").MemoryOverhead; got == nil || got.Median != 5e8 {
		t.Errorf("memory over the baseline: %+v", got)
	}
}

func TestEnergyMeasured(t *testing.T) {
	rec := record(over(2, "x", always(map[string]float64{"goodput": 8e9, "cpu_per_gbit": 0.1}))...)
	var traces []Trace
	for round := 1; round <= 2; round++ {
		trace := seconds("x", round, around(8e9, 10)...)
		trace.Nodes[0].Power = slices.Repeat([]float64{40}, 10)
		client := trace.Nodes[0]
		client.Node, client.Power = "client", slices.Repeat([]float64{20}, 10)
		trace.Nodes = append(trace.Nodes, client)
		traces = append(traces, trace)
	}
	for arena, want := range map[string]float64{"kube": 60, "lab": 30} {
		rec.Run.Arena = arena
		got := efficiencyOf(t, Assemble(rec, Options{Traces: traces, WattsPerCore: 5}), "x").Energy
		if got == nil || !got.Measured || math.Abs(got.JoulesPerGB-want) > 1e-9 {
			t.Errorf("%s: %+v, want %v J/GB measured", arena, got, want)
		}
	}
}

func TestFrontier(t *testing.T) {
	r := Assemble(costly(0, map[string]cost{
		"host": {40e9, 0.01, 1e9}, "fast": {30e9, 0.1, 1e9}, "cheap": {20e9, 0.05, 1e9},
		"slow": {20e9, 0.1, 1e9}, "dear": {30e9, 0.2, 1e9}, "twin": {30e9, 0.1, 1e9},
	}), Options{})
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
	rec := costly(0.02, map[string]cost{
		"host": {38e9, 0.05, 1e9}, "a": {37e9, 0.052, 1e9}, "b": {36e9, 0.049, 1e9}, "c": {12e9, 0.2, 1e9}, "d": {12.5e9, 0.19, 1e9},
	})
	for i := range rec.Samples {
		m := rec.Samples[i].Metrics
		m["cpu_per_gbit_user_system"] = m["cpu_per_gbit"]
		delete(m, "cpu_per_gbit")
		delete(m, "cpu_per_gbit_published")
	}
	r := Assemble(rec, Options{Fleet: &FleetSize{Nodes: 1, Gbps: 1}})
	a, c := efficiencyOf(t, r, "a"), efficiencyOf(t, r, "c")
	if a.Frontier || c.Frontier || a.Cluster != 1 || c.Cluster != 2 || a.CPUPerGbit != nil || a.UserSystem == nil {
		t.Errorf("a: %+v\nc: %+v", a, c)
	}
	if got := find(t, r, "a", "cpu_per_gbit_user_system"); got.Ranked || got.Tier != 0 {
		t.Errorf("a lower bound is ranked: %+v", got)
	}
	if len(r.Fleet.Rows) != 0 {
		t.Error("a lower bound was carried over to a fleet")
	}
}

func TestClusters(t *testing.T) {
	grouped := map[string]cost{
		"host": {38e9, 0.05, 1e9}, "a": {37e9, 0.052, 1e9}, "b": {36e9, 0.051, 1e9},
		"c": {12e9, 0.2, 1e9}, "d": {12.5e9, 0.19, 1e9}, "e": {11.8e9, 0.21, 1e9},
	}
	clusters := func(rec *result.Record) map[string]int {
		numbers := map[string]int{}
		for _, x := range Assemble(rec, Options{}).Efficiency {
			numbers[x.Contender] = x.Cluster
		}
		return numbers
	}
	want := map[string]int{"host": 0, "a": 1, "b": 1, "c": 2, "d": 2, "e": 2} // the baseline is no choice
	if diff := cmp.Diff(want, clusters(costly(0.02, grouped))); diff != "" {
		t.Errorf("two groups:\n%s", diff)
	}
	if diff := cmp.Diff(clusters(costly(0.02, grouped)), clusters(costly(0.02, grouped))); diff != "" {
		t.Errorf("the same run gives other groups:\n%s", diff)
	}
	alike := map[string]cost{}
	for i := range 8 {
		alike[fmt.Sprint("c", i)] = cost{20e9, 0.1, 1e9}
	}
	for contender, number := range clusters(costly(0.1, alike)) {
		if number != 0 {
			t.Errorf("%s is in cluster %d of contenders that are alike", contender, number)
		}
	}
	delete(grouped, "a")
	delete(grouped, "d")
	delete(grouped, "e")
	for contender, number := range clusters(costly(0.02, grouped)) {
		if number != 0 {
			t.Errorf("%s is in cluster %d of three contenders", contender, number)
		}
	}
}

func TestFleet(t *testing.T) {
	rec := costly(0, map[string]cost{"host": {40e9, 0.01, 1e9}, "x": {20e9, 0.05, 1.5e9}, "y": {1e9, 0.02, 1e9}})
	opt := Options{WattsPerCore: 10, Fleet: &FleetSize{Nodes: 100, Gbps: 2}, Prices: &Prices{Currency: "EUR", CoreMonth: 20, GiBMonth: 2, KWh: 0.5}}
	got := Assemble(rec, opt).Fleet
	memory, power := 100*0.5e9, 0.05*10*200.0
	month := 10*20 + memory/(1<<30)*2 + power/1000*730*0.5
	row := got.Rows[slices.IndexFunc(got.Rows, func(r FleetRow) bool { return r.Contender == "x" })]
	want := FleetRow{Contender: "x", Cores: Estimate{Median: 10, CI: &Interval{10, 10}}, Memory: &memory, Power: &power, Month: &month, Reached: true}
	if diff := cmp.Diff(want, row, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got.Step != "dts" || got.Currency != "EUR" || got.Rows[0].Contender != "host" || got.Rows[1].Reached {
		t.Errorf("fleet: %+v", got)
	}
	rec.Run.Arena = "lab"
	if row := Assemble(rec, opt).Fleet.Rows[2]; row.Memory != nil {
		t.Errorf("memory of nodes that are one machine: %v", *row.Memory)
	}
	opt.Fleet.Step = "other"
	if got := Assemble(rec, opt).Fleet; len(got.Rows) != 0 {
		t.Errorf("a step without figures: %+v", got)
	}
	if got := Assemble(rec, Options{}).Fleet; got != nil {
		t.Errorf("no fleet was asked for: %+v", got)
	}
}

func TestResolution(t *testing.T) {
	rec := costly(0.05, map[string]cost{"host": {40e9, 0.01, 1e9}, "x": {20e9, 0.05, 1.5e9}})
	r := Assemble(rec, Options{})
	for _, c := range []string{"host", "x"} {
		got := find(t, r, c, "goodput")
		if got.MDD == nil || *got.MDD < 0.02 || *got.MDD > 0.3 || got.RoundsFor5 < 6 || got.RoundsFor5 > 200 {
			t.Errorf("%s: mdd %v, rounds for 5 %% %d, with 8 rounds of 5 %% noise", c, got.MDD, got.RoundsFor5)
		}
	}
	rec.Samples = slices.DeleteFunc(rec.Samples, func(s result.Sample) bool { return s.Round > 3 })
	if got := find(t, Assemble(rec, Options{}), "x", "goodput"); got.MDD != nil || got.RoundsFor5 < 6 {
		t.Errorf("three rounds show nothing: mdd %v, rounds for 5 %% %d", got.MDD, got.RoundsFor5)
	}
}
