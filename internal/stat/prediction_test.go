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

// Seven products' figures of several runs: at least nine of ten ratios of a further run
// are inside, also where a run moves all of them together.
func TestPredictTogether(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 2))
	const trials, products = 500, 7
	for _, tt := range []struct {
		runs           int
		shared, single float64 // what a run moves: all products, and each
	}{{3, 0, 0.15}, {3, 0.15, 0.08}, {3, 0.2, 0}, {5, 0.2, 0.05}} {
		held := 0
		for range trials {
			rows := make([][]float64, products)
			next := make([]float64, products)
			for run := range tt.runs + 1 {
				mood := tt.shared * r.NormFloat64()
				for k := range rows {
					v := math.Exp(mood + tt.single*r.NormFloat64())
					if run == tt.runs {
						next[k] = v
					} else {
						rows[k] = append(rows[k], v)
					}
				}
			}
			for k, s := range PredictTogether(rows, 0.95) {
				if s.Low <= next[k] && next[k] <= s.High {
					held++
				}
			}
		}
		if share := float64(held) / (trials * products); share < 0.9 {
			t.Errorf("%+v: %.3f inside, want 0.9", tt, share)
		}
	}
	if s := Predict([]float64{0.3, 0.4}, 0.95); s.Bounded() || math.IsNaN(s.Ratio) {
		t.Errorf("two runs of one figure: %+v", s)
	}
	if s := Predict([]float64{0.3, 0}, 0.95); !math.IsNaN(s.Ratio) {
		t.Errorf("a figure of 0: %+v", s)
	}
}
