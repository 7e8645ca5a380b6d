package analysis_test

import (
	"math"
	"testing"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testutil/analysistest"
)

// Contenders that took slices in turns are compared cycle by cycle: a machine that
// slows down in some cycles, and a baseline with more slices than the others, bend
// no ratio.
func TestRatioWithinCycles(t *testing.T) {
	mood := []float64{1, 0.5, 2, 0.7, 1.4}
	sliced := func(contender string, round int, level float64, each int) result.Sample {
		s := analysistest.ValidSample(contender, round, map[string]float64{result.Goodput: 7e9 * level})
		s.Slices = &result.Slices{Metrics: map[string][]float64{}}
		for i, m := range mood {
			for range each {
				s.Slices.Cycles = append(s.Slices.Cycles, i+1)
				s.Slices.Metrics[result.Goodput] = append(s.Slices.Metrics[result.Goodput], 10e9*level*m)
			}
		}
		return s
	}
	var samples []result.Sample
	for round := 1; round <= 6; round++ {
		host, other := sliced("host", round, 1, 2), sliced("vxlan", round, 0.4, 1)
		// The other one's last slice is missing: its cycle counts for nobody.
		other.Slices.Cycles = other.Slices.Cycles[:4]
		other.Slices.Metrics[result.Goodput] = other.Slices.Metrics[result.Goodput][:4]
		samples = append(samples, host, other)
	}
	r := report.Analyse(analysistest.Record(samples...), analysis.Options{})
	got := analysistest.Find(t, r, "vxlan", result.Goodput)
	if got.VsBaseline == nil || math.Abs(got.VsBaseline.Ratio-0.4) > 1e-9 {
		t.Errorf("ratio %+v, want 0.4", got.VsBaseline)
	}
}

// Where 0 is a value as any other, as of a loss, one among the slices leaves the sample's own
// figure: a level would leave bursts out.
func TestLossOfCycles(t *testing.T) {
	burst := func(contender string) result.Sample {
		s := analysistest.ValidSample(contender, 1, map[string]float64{result.Loss: 0.1})
		s.Slices = &result.Slices{Cycles: []int{1, 2, 3, 4, 5}, Metrics: map[string][]float64{result.Loss: {0, 0.01, 0.01, 0.01, 0.47}}}
		return s
	}
	r := report.Analyse(analysistest.Record(burst("host"), burst("vxlan")), analysis.Options{})
	if got := analysistest.Find(t, r, "vxlan", result.Loss).Median; got != 0.1 {
		t.Errorf("loss %v, want 0.1", got)
	}
}

// A round's percentile is that of the requests of all its slices: slices in which the machine
// was away do not enter a mean of percentiles.
func TestPercentileOfARoundIsOfAllItsRequests(t *testing.T) {
	const p50 = "network_time_p50"
	r := report.Analyse(analysistest.StalledRun(t), analysis.Options{})
	for _, v := range analysistest.Find(t, r, "host", p50).Values {
		if math.Abs(v-30e-6) > 1e-6 {
			t.Errorf("a round has %v, want 30 µs", v)
		}
	}
	if got := analysistest.Find(t, r, "vxlan", p50); got.MDD == nil || *got.MDD > 0.001 {
		t.Errorf("rounds that are all alike have a smallest difference of %v", got.MDD)
	}
}

// A run that ended by itself has as many rounds as it took.
func TestRoundsOfARunThatEndedByItself(t *testing.T) {
	rec := analysistest.Record(analysistest.Over(3, "host", analysistest.Always(map[string]float64{result.Goodput: 1e9}))...)
	rec.Run.Plan.Rounds, rec.Run.Plan.Until = 60, 0.05
	rec.Run.Plan.Contenders = []result.Entry{{ID: "host"}}
	rec.Run.Plan.Steps = []result.Step{{ID: "dts"}}
	r := report.Analyse(rec, analysis.Options{})
	if r.Run.Rounds != 3 || rec.Run.Plan.Rounds != 60 {
		t.Errorf("%d rounds of a plan of %d", r.Run.Rounds, rec.Run.Plan.Rounds)
	}
	for _, f := range r.Findings {
		if f.Code == "incomplete_run" {
			t.Errorf("it is called incomplete: %s", f.Text)
		}
	}
}
