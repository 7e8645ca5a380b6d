package load

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSearch(t *testing.T) {
	const guess = 1000.0
	upTo := func(maximum float64) func(float64) (bool, error) {
		return func(rate float64) (bool, error) { return rate <= maximum, nil }
	}
	refuse := func(float64) (bool, error) { return false, nil }
	disturbed := func(maximum float64) func(float64) (bool, error) { // every other try fails
		n := 0
		return func(rate float64) (bool, error) { n++; return rate <= maximum && n%2 == 0, nil }
	}
	broken := errors.New("broken")
	tests := []struct {
		name           string
		probe, confirm func(float64) (bool, error)
		best           float64
		err            error
	}{
		{"near the closed loop's rate", upTo(985), upTo(985), 985, nil},
		{"the closed loop was disturbed", upTo(5370), upTo(5370), 5370, nil},
		{"a hundredfold", upTo(100_000), upTo(100_000), 100_000, nil},
		{"far below it", upTo(300), upTo(300), 300, nil},
		{"disturbed", disturbed(500), upTo(500), 500, nil},
		{"a long run carries less", upTo(800), upTo(640), 640, nil},
		{"none", refuse, refuse, 0, nil},
		{"none is confirmed", upTo(800), refuse, 0, nil},
		{"a probe breaks", func(float64) (bool, error) { return false, broken }, refuse, 0, broken},
		{"a confirmation breaks", upTo(800), func(float64) (bool, error) { return false, broken }, 0, broken},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			best, err := search(guess, tt.probe, tt.confirm)
			if !errors.Is(err, tt.err) || err == nil && (best > tt.best || math.Abs(best-tt.best) > tt.best/8) {
				t.Errorf("%v, %v; want %v or a little less, %v", best, err, tt.best, tt.err)
			}
		})
	}
}

// A machine that something slows down to half of its capacity for a third of the time, four
// tries at a stretch: the middle 90 % of searches find rates within a factor of 1.25, and
// none that the machine does not have. Without a look above its end, the search found
// 48,000 to 101,000.
func TestSearchOnADisturbedMachine(t *testing.T) {
	const capacity, searches = 100_000.0, 1000
	var found []float64
	tries := 0
	for seed := range uint64(searches) {
		rng := rand.New(rand.NewPCG(seed, 1))
		slow := rng.Float64() < 1.0/3
		now := func() float64 {
			tries++
			if slow && rng.Float64() < 0.25 || !slow && rng.Float64() < 0.125 {
				slow = !slow
			}
			here := capacity * math.Exp(0.03*rng.NormFloat64())
			if slow {
				here /= 2
			}
			return here
		}
		try := func(rate float64) (bool, error) { return rate <= now(), nil }
		best, err := search(now(), try, try)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, best)
	}
	slices.Sort(found)
	low, high := found[searches/20], found[searches-searches/20]
	if mean := float64(tries) / searches; mean > 45 {
		t.Errorf("a search takes %.1f tries", mean)
	}
	if high/low > 1.25 || found[searches-1] > 1.15*capacity {
		t.Errorf("5 %% of the searches are below %.0f, 5 %% above %.0f, of %.0f", low, high, capacity)
	}
}
