package findings_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testutil/analysistest"
)

// Contenders whose own noise lasts from round to round are named, a machine that drifts is
// not: it takes all contenders along.
func TestAutocorrelatedRounds(t *testing.T) {
	run := func(own, machine float64, unpaired, interrupted, searches bool) int {
		r := rand.New(rand.NewPCG(3, 9))
		rec := &result.Record{Run: result.Run{Baseline: "host", Plan: result.Plan{Rounds: 12, Unpaired: unpaired}}}
		state := map[string]float64{}
		drift := 0.0
		for round := 1; round <= 12; round++ {
			drift = machine*drift + r.NormFloat64()
			for _, c := range []string{"host", "a", "b", "c", "d", "e"} {
				state[c] = own*state[c] + r.NormFloat64()
				if interrupted && round == 12 && c != "a" {
					continue
				}
				rec.Samples = append(rec.Samples, analysistest.ValidSample(c, round, map[string]float64{"goodput": 20e9 * math.Exp(0.03*(state[c]+drift))}))
				if searches && round <= 3 {
					search := analysistest.ValidSample(c, round, map[string]float64{"rate": 1000})
					search.Step = "max"
					rec.Samples = append(rec.Samples, search)
				}
			}
		}
		n := 0
		for _, f := range each(rec, analysis.Options{}) {
			if f.Code == "lasting_noise" {
				n++
			}
		}
		return n
	}
	for name, tt := range map[string]struct {
		own, machine float64
		unpaired     bool
		interrupted  bool
		searches     bool // a further step, in the first rounds only
		want         int
	}{
		"lasting":          {0.7, 0, false, false, false, 1},
		"a drifting host":  {0, 0.95, false, false, false, 0},
		"rounds no pairs":  {0.7, 0, true, false, false, 0},
		"new in a round":   {0, 0, false, false, false, 0},
		"interrupted":      {0.7, 0, false, true, false, 1},
		"searched":         {0.7, 0, false, false, true, 1},
		"lasting and both": {0.7, 0.95, false, false, false, 1},
	} {
		if got := run(tt.own, tt.machine, tt.unpaired, tt.interrupted, tt.searches); got != tt.want {
			t.Errorf("%s: %d findings, want %d", name, got, tt.want)
		}
	}
}
