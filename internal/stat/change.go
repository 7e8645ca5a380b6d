package stat

import (
	"math/rand/v2"
	"slices"
)

// Change is the place where a series of values in order of time most likely went from
// one level to another.
type Change struct {
	At int     // index of the first value of the second level; 0 if there is no second level
	P  float64 // two-sided, of the hypothesis that the order of the values means nothing
}

// ChangeTest looks for a change of level. It remembers the distributions that
// it compares with. The zero value is ready; it is for one goroutine at a time.
type ChangeTest struct {
	null map[int][]float64 // sizes for values in random order, sorted, by their number
}

// Change is Pettitt's test (Applied Statistics 28, 1979): it finds the split whose sides
// differ most in rank. P comes from random orders with a fixed seed and is at least
// 1/5000; Pettitt's approximation cannot give a small P for ten values. The test assumes
// that values are independent of each other. A slow drift also gives a small P, so a
// caller must also look at the size of the change.
func (t *ChangeTest) Change(values []float64) Change {
	at, size := pettitt(values)
	if size == 0 {
		return Change{P: 1}
	}
	null := t.sizes(len(values))
	below, _ := slices.BinarySearch(null, size)
	return Change{At: at, P: float64(len(null)-below+1) / float64(len(null)+1)}
}

// pettitt returns the best split and the size of its rank difference.
func pettitt(values []float64) (at int, size float64) {
	score := 0.0 // sum of sign(values[j]−values[i]) over i < t ≤ j
	for t := 1; t < len(values); t++ {
		for _, v := range values {
			switch {
			case v > values[t-1]:
				score++
			case v < values[t-1]:
				score--
			}
		}
		if abs := max(score, -score); abs > size {
			at, size = t, abs
		}
	}
	return at, size
}

func (t *ChangeTest) sizes(n int) []float64 {
	if t.null[n] == nil {
		if t.null == nil {
			t.null = map[int][]float64{}
		}
		t.null[n] = simulated(n, draws, func(values []float64) float64 {
			_, size := pettitt(values)
			return size
		})
	}
	return t.null[n]
}

// simulated draws n standard normal values, with a fixed seed, and computes their
// statistic, draws times. It returns the statistics in ascending order.
func simulated(n, draws int, statistic func(values []float64) float64) []float64 {
	r := rand.New(rand.NewPCG(uint64(n), 0))
	values := make([]float64, n)
	drawn := make([]float64, draws)
	for i := range drawn {
		for j := range values {
			values[j] = r.NormFloat64()
		}
		drawn[i] = statistic(values)
	}
	slices.Sort(drawn)
	return drawn
}
