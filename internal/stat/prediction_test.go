package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The interval for another run holds the figures of another run as often as it says, where
// runs differ by much more than the rounds of one do; the interval of a single run does not.
func TestPredict(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 1))
	const trials, confidence = 2000, 0.9
	for _, runs := range []int{3, 4, 6} {
		held := 0
		for range trials {
			figures := make([]float64, runs+1)
			for i := range figures {
				figures[i] = 0.35 * math.Exp(0.2*r.NormFloat64()+0.04*r.NormFloat64())
			}
			if s := Predict(figures[:runs], confidence); s.Low <= figures[runs] && figures[runs] <= s.High {
				held++
			}
		}
		if share := float64(held) / trials; share < confidence-3*math.Sqrt(confidence*(1-confidence)/trials) {
			t.Errorf("%d runs: %.3f of further runs inside, want %v", runs, share, confidence)
		}
	}
}

// Seven products' ratios of several runs: at least nine of ten ratios of a further run are
// inside, also where a run moves all of them together, in proportion or alike, and for a
// product of which one run alone is known.
func TestPredictRatios(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 2))
	const trials = 500
	products := []float64{0.82, 0.74, 0.65, 0.6, 0.56, 0.43, 0.35}
	for _, tt := range []struct {
		runs           int
		factor, single float64 // what a run moves: all products by their logarithms, and each
	}{{3, 0, 0.1}, {3, 0.2, 0.03}, {3, 0.3, 0}, {5, 0.2, 0.05}, {8, 0.2, 0.03}} {
		held := 0
		for range trials {
			rows := make([][]float64, len(products))
			next := make([]float64, len(products))
			for run := range tt.runs + 1 {
				mood := tt.factor * r.NormFloat64()
				for k, ratio := range products {
					v := math.Exp(math.Log(ratio)*(1+mood) + tt.single*r.NormFloat64())
					switch {
					case run == tt.runs:
						next[k] = v
					case k > 0 || run == 0: // the first product was measured in one run
						rows[k] = append(rows[k], v)
					}
				}
			}
			for k, s := range PredictRatios(rows, 0.95) {
				if s.Low <= next[k] && next[k] <= s.High {
					held++
				}
			}
		}
		if share := float64(held) / float64(trials*len(products)); share < 0.9 {
			t.Errorf("%+v: %.3f inside, want 0.9", tt, share)
		} else {
			t.Logf("%+v: %.3f inside", tt, share)
		}
	}
	if s := PredictRatios([][]float64{{0.3, 0.4}, {0.5, 0.6}}, 0.95); s[0].Bounded() || math.IsNaN(s[0].Ratio) {
		t.Errorf("two runs: %+v", s)
	}
	if s := PredictRatios([][]float64{{0.3, 0.4, 0.35}, {0.5, 0, 0.6}}, 0.95); !s[0].Bounded() || s[1].Bounded() {
		t.Errorf("a figure of 0: %+v", s)
	}
	if s := Predict([]float64{0.3, 0.4}, 0.95); s.Bounded() || math.IsNaN(s.Ratio) {
		t.Errorf("two runs of one figure: %+v", s)
	}
}
