package stat

import (
	"math/rand/v2"
	"slices"
)

// Change is where a series of values in order of time most likely went from
// one level to another.
type Change struct {
	At int     // index of the first value of the second level; 0 where there is none
	P  float64 // two-sided: that the order of the values means nothing
}

// ChangeTest looks for a change of level. It remembers the distributions that
// it compares with. The zero value is ready; it is for one goroutine at a time.
type ChangeTest struct {
	null map[int][]float64 // sizes for values in random order, sorted, by their number
}

// Change is Pettitt's test (Applied Statistics 28, 1979): the split whose
// sides differ most in rank. p is from random orders with a fixed seed, no
// less than 1/5000; his own approximation can't give a small one for ten values. It takes
// the values for independent of each other: what is smooth from one value to
// the next gives a small p without a step, so that a caller also asks how
// large the change is.
func (t *ChangeTest) Change(values []float64) Change {
	at, size := pettitt(values)
	if size == 0 {
		return Change{P: 1}
	}
	null := t.sizes(len(values))
	below, _ := slices.BinarySearch(null, size)
	return Change{At: at, P: float64(len(null)-below+1) / float64(len(null)+1)}
}

// pettitt is the best split and the size of its rank difference.
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

// simulated is a statistic of n standard normal values, drawn anew so many
// times with a fixed seed, sorted.
func simulated(n, draws int, of func(values []float64) float64) []float64 {
	r := rand.New(rand.NewPCG(uint64(n), 0))
	values := make([]float64, n)
	drawn := make([]float64, draws)
	for i := range drawn {
		for j := range values {
			values[j] = r.NormFloat64()
		}
		drawn[i] = of(values)
	}
	slices.Sort(drawn)
	return drawn
}
