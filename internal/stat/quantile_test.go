package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// requests are n latencies of a round: exponential beyond a floor, times level, with a
// stall in one of ten rounds if there are to be some.
func requests(r *rand.Rand, n int, level float64, stalls bool) Requests {
	counts := map[float64]int64{}
	put := func(v float64) { counts[math.Round(v*200)/200]++ }
	for range n {
		put(level * (1 + r.ExpFloat64()))
	}
	if stalls && r.IntN(10) == 0 {
		for i := range n / 50 {
			put(level * float64(i) / 2)
		}
	}
	delete(counts, 0)
	var values []float64
	for v := range counts {
		values = append(values, v)
	}
	slices.Sort(values)
	var n64 []int64
	for _, v := range values {
		n64 = append(n64, counts[v])
	}
	return NewRequests(values, n64)
}

// One estimand: the ratio is that of the two figures, whatever single rounds say.
func TestQuantileRatioIsOfTheFigures(t *testing.T) {
	// In most rounds x is slower, but the slowest requests of all are the baseline's.
	var values, base []Requests
	for range 6 {
		values = append(values, NewRequests([]float64{100, 650}, []int64{980, 20}))
		base = append(base, NewRequests([]float64{100, 400}, []int64{980, 20}))
	}
	values = append(values, NewRequests([]float64{100, 650}, []int64{980, 20}))
	base = append(base, NewRequests([]float64{100, 713}, []int64{900, 100}))
	s, p := QuantileRatio(values, base, 0.99, 0.95, 1)
	if math.Abs(s.Ratio-650.0/713) > 1e-3 {
		t.Errorf("the ratio is %v, want that of 650 to 713", s.Ratio)
	}
	if s.Bounded() || p != 1 {
		t.Errorf("interval %v to %v, p %v of one stall: nothing can be told", s.Low, s.High, p)
	}
}

func TestQuantileNeedsRounds(t *testing.T) {
	one := NewRequests([]float64{1, 2}, []int64{99, 1})
	rounds := slices.Repeat([]Requests{one}, 5)
	if _, _, ok := QuantileInterval(rounds, 0.5, 0.95); ok {
		t.Error("five rounds gave an interval of 95 %")
	}
	if s, p := QuantileRatio(rounds, rounds, 0.5, 0.95, 1); s.Bounded() || s.Ratio != 1 || p != 1 {
		t.Errorf("%+v, p %v", s, p)
	}
}

func TestRoundsBeyond(t *testing.T) {
	quiet, stall := NewRequests([]float64{1}, []int64{1000}), NewRequests([]float64{1, 50}, []int64{900, 100})
	if got := RoundsBeyond([]Requests{quiet, quiet, stall, quiet}, 0.99); got != 1 {
		t.Errorf("a hundred requests of one stall come from %v rounds", got)
	}
	if got := RoundsBeyond([]Requests{stall, stall, stall, stall}, 0.85); got != 4 {
		t.Errorf("four rounds with a stall come from %v rounds", got)
	}
}

// The intervals hold the truth as often as they say, and p is as rarely small.
func TestQuantileCoverage(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	runs := needs.Trials(150, 30)
	for _, tt := range []struct {
		rounds int
		level  float64
		stalls bool
	}{{6, 0.99, false}, {7, 0.99, false}, {7, 0.5, false}, {7, 0.99, true}, {10, 0.99, true}} {
		held, alarms, ownHeld := 0, 0, 0
		truth := func() float64 { // of many rounds
			var many []Requests
			for range 400 {
				many = append(many, requests(r, 1000, math.Exp(0.05*r.NormFloat64()), tt.stalls))
			}
			return math.Exp(pooledQuantile(many, nil, 0, tt.level))
		}()
		for range runs {
			var values, base []Requests
			for range tt.rounds {
				shared := math.Exp(0.05 * r.NormFloat64())
				values = append(values, requests(r, 1000, 1.3*shared, tt.stalls))
				base = append(base, requests(r, 1000, shared, tt.stalls))
			}
			s, _ := QuantileRatio(values, base, tt.level, 0.95, 1)
			if s.Low <= 1.3 && 1.3 <= s.High {
				held++
			}
			if low, high, ok := QuantileInterval(base, tt.level, 0.95); ok && low <= truth && truth <= high {
				ownHeld++
			}
			for i := range values {
				values[i] = requests(r, 1000, 1, tt.stalls)
				base[i] = requests(r, 1000, 1, tt.stalls)
			}
			if _, p := QuantileRatio(values, base, tt.level, 0.95, 1); p <= 0.05 {
				alarms++
			}
		}
		t.Logf("%+v: ratio %d, own %d, alarms %d of %d", tt, held, ownHeld, alarms, runs)
		margin := 3 * math.Sqrt(0.05*0.95*float64(runs))
		if float64(held) < 0.95*float64(runs)-margin || float64(alarms) > 0.05*float64(runs)+margin {
			t.Errorf("%+v: the interval held %d, false alarms %d of %d", tt, held, alarms, runs)
		}
	}
}
