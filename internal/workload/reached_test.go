package workload

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A machine that something slows down to half of its rate for a third of the time, four
// looks at a stretch: the middle 90 % of brief looks are within a factor of 1.25. Medians
// of three looks were from 49,000 to 103,000.
func TestReachedOnADisturbedMachine(t *testing.T) {
	const capacity, runs = 100_000.0, 1000
	var found []float64
	for seed := range uint64(runs) {
		rng := rand.New(rand.NewPCG(seed, 1))
		slow := rng.Float64() < 1.0/3
		rate, err := reached(func() (float64, error) {
			if slow && rng.Float64() < 0.25 || !slow && rng.Float64() < 0.125 {
				slow = !slow
			}
			here := capacity * math.Exp(0.03*rng.NormFloat64())
			if slow {
				here /= 2
			}
			return here, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, rate)
	}
	slices.Sort(found)
	low, high := found[runs/20], found[runs-runs/20]
	if high/low > 1.25 {
		t.Errorf("5 %% of the looks are below %.0f, 5 %% above %.0f, of %.0f", low, high, capacity)
	}
}

// One look that fails costs a look, two are an error.
func TestReachedFails(t *testing.T) {
	for failing, want := range map[int]bool{1: true, 2: false} {
		n := 0
		rate, err := reached(func() (float64, error) {
			if n++; n <= failing {
				return 0, errors.New("no request was answered")
			}
			return float64(n), nil
		})
		if reaches := err == nil && rate == looks-1; reaches != want {
			t.Errorf("%d failing: %v/s, %v", failing, rate, err)
		}
	}
}

func TestReachedNothing(t *testing.T) {
	if rate, err := reached(func() (float64, error) { return 0, nil }); err == nil {
		t.Errorf("%v/s of a server without a response", rate)
	}
}
