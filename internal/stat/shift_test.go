package stat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The interval holds the true ratio as often as it says.
func TestRatioShiftCoverage(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	const times, truth = 2000, 1.3
	for _, n := range [][2]int{{4, 4}, {6, 6}, {5, 9}, {40, 30}} {
		held := 0
		for range times {
			was, now := make([]float64, n[0]), make([]float64, n[1])
			for i := range was {
				was[i] = math.Exp(0.3 * rng.NormFloat64())
			}
			for i := range now {
				now[i] = truth * math.Exp(0.3*rng.NormFloat64())
			}
			if s := RatioShift(was, now, 0.95); s.Low <= truth && truth <= s.High {
				held++
			}
		}
		if held < times*935/1000 {
			t.Errorf("%v: held in %d of %d", n, held, times)
		}
	}
}

// Interval and test agree: no change is inside exactly where p is above 5 %.
func TestRatioShiftAgreesWithTest(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for range 2000 {
		was, now := make([]float64, 4+rng.IntN(5)), make([]float64, 4+rng.IntN(5))
		for i := range was {
			was[i] = rng.ExpFloat64()
		}
		for i := range now {
			now[i] = rng.ExpFloat64() * 3
		}
		s, p := RatioShift(was, now, 0.95), MannWhitney(was, now)
		if inside := s.Low <= 1 && 1 <= s.High; inside != (p > 0.05) {
			t.Fatalf("interval %g–%g, p %g of\n%v\n%v", s.Low, s.High, p, was, now)
		}
	}
}

func TestRatioShift(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for name, c := range map[string]struct {
		was, now []float64
		want     Shift
	}{
		"doubled":       {[]float64{1, 1, 1, 1}, []float64{2, 2, 2, 2}, Shift{2, 2, 2}},
		"apart":         {[]float64{1, 2, 3, 4}, []float64{10, 20, 30, 40}, Shift{10, 2.5, 40}},
		"few":           {[]float64{1, 2, 3}, []float64{2, 4, 6}, Shift{2, nan, nan}},
		"none":          {nil, []float64{1}, Shift{nan, nan, nan}},
		"zero stays":    {[]float64{0, 0, 0, 0}, []float64{0, 0, 0, 0}, Shift{1, 1, 1}},
		"zero no more":  {[]float64{0, 0, 0, 0}, []float64{5, 6, 7, 8}, Shift{inf, inf, inf}},
		"zero at last":  {[]float64{5, 6, 7, 8}, []float64{0, 0, 0, 0}, Shift{0, 0, 0}},
		"single rounds": {[]float64{2}, []float64{3}, Shift{1.5, nan, nan}},
	} {
		got := RatioShift(c.was, c.now, 0.95)
		if diff := cmp.Diff(fmt.Sprintf("%.6g", c.want), fmt.Sprintf("%.6g", got)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// The ratios that are picked out are those of all of them sorted.
func TestPairs(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for range 200 {
		was, now := make([]float64, 1+rng.IntN(9)), make([]float64, 1+rng.IntN(9))
		for _, side := range [][]float64{was, now} {
			for i := range side {
				side[i] = float64(rng.IntN(5)) // with ties and zeros
			}
		}
		p := newPairs(was, now)
		var all []float64
		for i := range was {
			for j := range now {
				all = append(all, p.of(i, j))
			}
		}
		slices.Sort(all)
		for k, want := range all {
			if got := p.ratio(k); got != want {
				t.Fatalf("%v to %v: ratio %d is %g, want %g", was, now, k, got, want)
			}
		}
	}
}

func BenchmarkRatioShift(b *testing.B) {
	for _, n := range []int{6, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(10, 10))
			was, now := make([]float64, n), make([]float64, n)
			for i := range n {
				was[i], now[i] = rng.ExpFloat64(), rng.ExpFloat64()
			}
			for b.Loop() {
				RatioShift(was, now, 0.95)
			}
		})
	}
}
