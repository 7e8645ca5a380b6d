package findings

import (
	"testing"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testutil/analysistest"
)

// A contender without a figure that the others have is a finding, but not where the
// load generator spoiled the figure's clock, which has a finding of its own.
func TestMissingFigureOfSpoiledClock(t *testing.T) {
	for spoiled, want := range map[bool]int{false: 1, true: 0} {
		var samples []result.Sample
		for _, contender := range []string{"host", "a", "b"} {
			s := analysistest.ValidSample(contender, 1, map[string]float64{result.LatencyMean: 1e-4, result.Rate: 5000})
			if contender == "b" {
				delete(s.Metrics, result.LatencyMean)
				if spoiled {
					s.DroppedClocks = []result.DroppedClock{{Clock: "latency", Reasons: []result.Reason{{Code: "load_generator_late", Text: "late"}}}}
				}
			}
			samples = append(samples, s)
		}
		e := &evidence{Evidence: analysis.Collect(analysistest.Record(samples...), analysis.Options{Confidence: 0.95})}
		if got := missingFigure(e); len(got) != want {
			t.Errorf("spoiled %v: %v, want %d findings", spoiled, got, want)
		}
	}
}

// The trace of a sample that was measured in slices is of the pauses, too: no rule about
// the course of a load reads it.
func TestSlicedSamplesAreNotTraced(t *testing.T) {
	for sliced, want := range map[bool]int{false: 1, true: 0} {
		s := analysistest.ValidSample("host", 1, map[string]float64{result.Goodput: 1e9})
		if sliced {
			s.Slices = &result.Slices{Cycles: []int{1}, Metrics: map[string][]float64{result.Goodput: {1e9}}}
		}
		opt := analysis.Options{Confidence: 0.95, Traces: []analysis.Trace{{Key: s.Key()}}}
		if got := tracedSamples(analysis.Collect(analysistest.Record(s), opt)); len(got) != want {
			t.Errorf("sliced %v: %d traced samples, want %d", sliced, len(got), want)
		}
	}
}
