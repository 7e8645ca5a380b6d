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

// Seven products' ratios of several machines: at least nine of ten ratios of a run on a further
// machine are inside, also where a machine moves all of them together, in proportion or alike,
// for a product of which one run alone is known, and where one machine made most of the runs.
func TestPredictRatios(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 2))
	const trials, confidence = 500, 0.9
	products := []float64{0.82, 0.74, 0.65, 0.6, 0.56, 0.43, 0.35}
	for _, tt := range []struct {
		runs                 []int   // of each machine
		factor, hour, single float64 // what a machine and an hour of it move: all products by their logarithms; and each product alone
	}{
		{[]int{1, 1, 1}, 0, 0, 0.1}, {[]int{1, 1, 1}, 0.2, 0, 0.03}, {[]int{1, 1, 1}, 0.3, 0, 0}, {[]int{1, 1, 1, 1, 1}, 0.2, 0, 0.05},
		{[]int{1, 1, 1, 1, 1, 1, 1, 1}, 0.2, 0, 0.03},
		{[]int{2, 1, 1, 1, 4}, 0.2, 0.05, 0.03}, {[]int{2, 1, 1, 1, 4}, 0.1, 0.1, 0.03}, {[]int{8, 1, 1, 1, 1}, 0.2, 0, 0},
	} {
		held, asRuns := 0, 0
		for range trials {
			rows := make([][][]float64, len(products))
			apart := make([][][]float64, len(products)) // each run taken for a machine
			next := make([]float64, len(products))
			for machine, runs := range append(tt.runs, 1) {
				mood := tt.factor * r.NormFloat64()
				for run := range runs {
					hour := tt.hour * r.NormFloat64()
					for k, ratio := range products {
						v := math.Exp(math.Log(ratio)*(1+mood+hour) + tt.single*r.NormFloat64())
						if run == 0 {
							rows[k] = append(rows[k], nil)
						}
						switch {
						case machine == len(tt.runs):
							next[k] = v
						case k > 0 || machine+run == 0: // the first product was measured in one run
							rows[k][machine] = append(rows[k][machine], v)
							apart[k] = append(apart[k], []float64{v})
						}
					}
				}
			}
			count := func(list []Shift) (n int) {
				for k, s := range list {
					if s.Low <= next[k] && next[k] <= s.High {
						n++
					}
				}
				return n
			}
			held += count(PredictRatios(rows, confidence))
			asRuns += count(PredictRatios(apart, confidence))
		}
		all := float64(trials * len(products))
		if share := float64(held) / all; share < confidence-0.04 { // three standard errors: the ratios of a trial move together
			t.Errorf("%+v: %.3f inside, want %v", tt, share, confidence)
		} else {
			t.Logf("%+v: %.3f inside; %.3f with each run taken for a machine", tt, share, float64(asRuns)/all)
		}
	}
	one := func(figures ...float64) (row [][]float64) {
		for _, v := range figures {
			row = append(row, []float64{v})
		}
		return row
	}
	if s := PredictRatios([][][]float64{one(0.3, 0.4), one(0.5, 0.6)}, 0.95); s[0].Bounded() || math.IsNaN(s[0].Ratio) {
		t.Errorf("two machines: %+v", s)
	}
	if s := PredictRatios([][][]float64{{{0.3, 0.4, 0.35}, {0.31}}}, 0.95); s[0].Bounded() {
		t.Errorf("four runs of two machines: %+v", s)
	}
	if s := PredictRatios([][][]float64{one(0.3, 0.4, 0.35), one(0.5, 0, 0.6)}, 0.95); !s[0].Bounded() || s[1].Bounded() {
		t.Errorf("a figure of 0: %+v", s)
	}
	if s := Predict([]float64{0.3, 0.4}, 0.95); s.Bounded() || math.IsNaN(s.Ratio) {
		t.Errorf("two runs of one figure: %+v", s)
	}
}
