package report

import (
	"math"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/layout"
)

// priced is the quick sample with the efficiency of its first TCP step and a
// fleet.
func priced() *analysis.Report {
	r := sample(6)
	add := func(contender string, goodput, cpu float64, frontier bool, cluster int) {
		published := cpu / 2
		e := analysis.Efficiency{
			Contender: contender, Kernel: "6.18.0", Underlay: "switch", Step: "dts", Path: "pod", Frontier: frontier, Cluster: cluster,
			Goodput:    analysis.Estimate{Median: goodput, CI: &analysis.Interval{goodput * 0.98, goodput * 1.02}},
			CPUPerGbit: &analysis.Estimate{Median: cpu}, Published: &published,
			Energy: &analysis.Energy{JoulesPerGB: cpu * 80, Basis: "estimate: 10 W for each busy core, as given; nothing was measured"},
		}
		if contender != r.Baseline {
			e.MemoryOverhead = &analysis.Estimate{Median: 120 << 20}
		}
		r.Efficiency = append(r.Efficiency, e)
	}
	add("host", 17.3e9, 0.081, false, 1)
	add("macvlan", 17.1e9, 0.083, true, 1)
	add("flannel-host-gw", 15.9e9, 0.08, true, 1)
	add("flannel-vxlan", 9.6e9, 0.166, false, 2)
	memory, power, month := float64(120<<30), 1660.0, 12345.678
	r.Fleet = &analysis.Fleet{Nodes: 1000, Gbps: 10, Step: "dts", Currency: "EUR", Rows: []analysis.FleetRow{
		{Contender: "macvlan", Kernel: "6.18.0", Underlay: "switch", Reached: true, Month: &month,
			Cores: analysis.Estimate{Median: 830, CI: &analysis.Interval{810, 1850}}, Memory: &memory, Power: &power},
		{Contender: "flannel-vxlan", Kernel: "6.18.0", Underlay: "switch", Cores: analysis.Estimate{Median: 1660}, Power: &power},
	}}
	return r
}

func TestEfficiencyGolden(t *testing.T) {
	r := priced()
	golden(t, "efficiency.txt", write(t, "text", r, Options{}))
}

func TestEfficiencySchema(t *testing.T) {
	r := priced()
	r.Results[0].MDD, r.Results[0].RoundsFor5 = &r.Results[0].Confidence, 7
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(write(t, "json", r, Options{})))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema(t).Validate(doc); err != nil {
		t.Error(err)
	}
}

// What overflowed is left out, in every format.
func TestEfficiencyFinite(t *testing.T) {
	r := priced()
	inf := math.Inf(1)
	r.Efficiency[1].Published = &inf
	r.Efficiency[2].CPUPerGbit.Median = math.NaN()
	r.Fleet.Rows[0].Month = &inf
	r.Results[0].MDD = &inf
	for _, format := range Formats() {
		write(t, format, r, Options{})
	}
	if got := finite(r); len(got.Efficiency) != 2 || len(got.Fleet.Rows) != 1 || got.Results[0].MDD != nil {
		t.Errorf("%d efficiencies, %d rows of the fleet", len(got.Efficiency), len(got.Fleet.Rows))
	}
	if len(r.Efficiency) != 4 || len(r.Fleet.Rows) != 2 {
		t.Error("the report itself was changed")
	}
}

func TestFleetWithoutFigures(t *testing.T) {
	r := sample(6)
	r.Fleet = &analysis.Fleet{Nodes: 3, Gbps: 1, Step: "idle", Rows: []analysis.FleetRow{}}
	for _, format := range []string{"text", "md"} {
		if got := write(t, format, r, Options{}); !strings.Contains(got, "There is no CPU per Gbit/s of step idle") {
			t.Errorf("%s does not say why there is no fleet:\n%s", format, got)
		}
	}
}

func TestThousands(t *testing.T) {
	for v, want := range map[float64]string{0: "0.0", 9.96: "10.0", 12: "12", 999.4: "999", 1000: "1,000", 1234567: "1,234,567", -1234: "-1,234", 100000: "100,000"} {
		if got := layout.Thousands(v); got != want {
			t.Errorf("thousands(%v) = %q, want %q", v, got, want)
		}
	}
}
