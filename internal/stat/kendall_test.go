package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestKendallTau(t *testing.T) {
	for _, tt := range []struct {
		name string
		x, y []float64
		want float64
	}{
		{"the same order", []float64{1, 2, 3, 4}, []float64{10, 20, 30, 40}, 1},
		{"the opposite", []float64{1, 2, 3, 4}, []float64{4, 3, 2, 1}, -1},
		{"one pair of six turned", []float64{1, 2, 3, 4}, []float64{1, 2, 4, 3}, 4. / 6},
		// 5 pairs in order, none against, one tie on the left: 5/sqrt(5·6).
		{"a tie", []float64{1, 2, 2, 3}, []float64{1, 2, 3, 4}, 5 / math.Sqrt(30)},
	} {
		if got := KendallTau(tt.x, tt.y); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	for _, x := range [][]float64{{1, 1, 1}, {1}, nil} {
		if got := KendallTau(x, []float64{1, 2, 3}); !math.IsNaN(got) {
			t.Errorf("%v: %v, want NaN", x, got)
		}
	}
}

// Of samples from a bivariate normal, whose tau is 2/π·asin(ρ), the intervals hold it in
// at least 93 % of cases.
func TestKendallIntervalCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{6, 9, 15, 22} {
		for _, rho := range []float64{0, 0.5, 0.8, 0.95} {
			const runs = 2000
			held, true_ := 0, 2/math.Pi*math.Asin(rho)
			for range runs {
				x, y := make([]float64, n), make([]float64, n)
				for i := range x {
					x[i] = rng.NormFloat64()
					y[i] = rho*x[i] + math.Sqrt(1-rho*rho)*rng.NormFloat64()
				}
				low, high, ok := KendallInterval(KendallTau(x, y), n, 0.95)
				if !ok || low > high || low < -1 || high > 1 {
					t.Fatalf("[%v, %v], %v", low, high, ok)
				}
				if low <= true_ && true_ <= high {
					held++
				}
			}
			if share := float64(held) / runs; share < 0.93 {
				t.Errorf("%d pairs, rho %v: the interval holds tau in %.3f", n, rho, share)
			} else {
				t.Logf("%d pairs, rho %v: %.3f", n, rho, share)
			}
		}
	}
	if _, _, ok := KendallInterval(1, 4, 0.95); ok {
		t.Error("four pairs have an interval")
	}
}
