package stat

import (
	"math/rand/v2"
	"slices"
)

// Split is a division of values into a lower and an upper group.
type Split struct {
	Low, High []float64 // sorted
	P         float64   // of the hypothesis that all values come from one normal distribution; 1 with too few values
}

// minSplit is the fewest values for a test: two groups of three.
const minSplit = 6

// MinSplit returns the smallest P that Split can give for n values; 1 if n is too small.
func MinSplit(n int) float64 {
	if n < minSplit {
		return 1
	}
	return 1.0 / (fineDraws + 1)
}

// SplitTest looks for values that lie in two groups. It remembers the
// distributions that it compares with. The zero value is ready; it is for one
// goroutine at a time.
type SplitTest struct {
	null map[simulation][]float64 // shares of simulated values, sorted
}

// simulation draws a number of values, and repeats that draws times.
type simulation struct{ values, draws int }

// A first simulation shows that most splits are due to chance. If p is below fineBelow, a
// finer simulation follows, whose p can pass a correction for all figures of a run.
const (
	draws     = 4999
	fineDraws = 99_999
	fineBelow = 0.01
)

// maxSimulated is the largest number of values that is simulated. More values are
// compared with this distribution, too: theirs is narrower, so P is never too small.
const maxSimulated = 200

// Split divides the values so that the share of their variance that lies between the
// groups is greatest. A group has at least two values, so an outlier is no group. P comes
// from a simulation with a fixed seed, and is at least 1/100000.
func (t *SplitTest) Split(values []float64) Split {
	if len(values) < minSplit {
		return Split{P: 1}
	}
	sorted := slices.Sorted(slices.Values(values))
	at, share := bestSplit(sorted)
	p := t.p(len(values), draws, share)
	if p < fineBelow {
		p = t.p(len(values), fineDraws, share)
	}
	return Split{Low: sorted[:at], High: sorted[at:], P: p}
}

// p returns the share of the simulations in which the groups are at least as far apart.
func (t *SplitTest) p(n, draws int, share float64) float64 {
	null := t.shares(simulation{min(n, maxSimulated), draws})
	below, _ := slices.BinarySearch(null, share)
	return float64(len(null)-below+1) / float64(len(null)+1)
}

// bestSplit returns the index of the upper group's first value, and the share of the
// variance between the groups.
func bestSplit(sorted []float64) (at int, share float64) {
	n := float64(len(sorted))
	mean, squares := 0.0, 0.0
	for _, v := range sorted {
		mean += v / n
	}
	for _, v := range sorted {
		squares += (v - mean) * (v - mean)
	}
	at = len(sorted) / 2
	if squares == 0 {
		return at, 0
	}
	low := 0.0 // sum of the lower part's distances from the mean
	for i, v := range sorted[:len(sorted)-2] {
		low += v - mean
		k := float64(i + 1)
		if between := low * low * n / (k * (n - k)) / squares; i > 0 && between > share {
			at, share = i+1, between
		}
	}
	return at, share
}

func (t *SplitTest) shares(of simulation) []float64 {
	if t.null[of] == nil {
		if t.null == nil {
			t.null = map[simulation][]float64{}
		}
		t.null[of] = drawSimulated(of.values, of.draws, func(values []float64) float64 {
			slices.Sort(values)
			_, share := bestSplit(values)
			return share
		})
	}
	return t.null[of]
}

// drawSimulated draws n standard normal values, with a fixed seed, and computes their
// statistic, draws times. It returns the statistics in ascending order.
func drawSimulated(n, draws int, statistic func(values []float64) float64) []float64 {
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
