package report

import (
	"math"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/cnibench/cnibench/internal/analysis"
)

// costed is the quick sample with the efficiency of its first TCP step.
func costed() *analysis.Report {
	r := sample(6)
	add := func(contender string, goodput, cpu float64, frontier bool) {
		published := cpu / 2
		e := analysis.Efficiency{
			Contender: contender, Kernel: "6.18.0", Underlay: "switch", Step: "dts", Path: "pod", Frontier: frontier,
			Goodput:    analysis.Estimate{Median: goodput, CI: &analysis.Interval{goodput * 0.98, goodput * 1.02}},
			CPUPerGbit: &analysis.Estimate{Median: cpu}, Published: &published,
		}
		if contender != r.Baseline {
			e.MemoryOverhead = &analysis.Estimate{Median: 120 << 20}
		}
		r.Efficiency = append(r.Efficiency, e)
	}
	add("host", 17.3e9, 0.081, false)
	add("macvlan", 17.1e9, 0.083, true)
	add("flannel-host-gw", 15.9e9, 0.08, true)
	add("flannel-vxlan", 9.6e9, 0.166, false)
	return r
}

func TestEfficiencySchema(t *testing.T) {
	r := costed()
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
	r := costed()
	inf := math.Inf(1)
	r.Efficiency[1].Published = &inf
	r.Efficiency[2].CPUPerGbit.Median = math.NaN()
	r.Results[0].MDD = &inf
	for _, format := range Formats() {
		write(t, format, r, Options{})
	}
	if got := finite(r); len(got.Efficiency) != 2 || got.Results[0].MDD != nil {
		t.Errorf("%d efficiencies", len(got.Efficiency))
	}
	if len(r.Efficiency) != 4 {
		t.Error("the report itself was changed")
	}
}
