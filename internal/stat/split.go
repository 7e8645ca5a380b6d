package stat

import "slices"

// Split is values parted into a lower and an upper group.
type Split struct {
	Low, High []float64 // sorted
	P         float64   // that one normal distribution gives groups as far apart; 1 where there are too few values
}

// leastSplit is the number of values from which a split is told apart from
// chance: two groups of three.
const leastSplit = 6

// LeastSplit is the smallest p that Split gives of n values: 1 where they are
// too few.
func LeastSplit(n int) float64 {
	if n < leastSplit {
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

// simulation is of so many values, drawn so often.
type simulation struct{ values, draws int }

// draws are how often values are simulated: often enough to see that a split
// is nothing, and, where it may be one, often enough for a correction over all
// figures of a run.
const (
	draws     = 4999
	fineDraws = 99_999
	fineBelow = 0.01 // p from which the finer simulation decides
)

// mostSimulated is the number of values from which a distribution stands for
// those of more: shares only come closer together, so that p is on the safe
// side.
const mostSimulated = 200

// Split parts the values where the share of their variance that lies between
// the groups is greatest; no group has fewer than two values, so that an
// outlier is none. p is by simulation with a fixed seed, no less than 1/100000.
func (t *SplitTest) Split(values []float64) Split {
	if len(values) < leastSplit {
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

// p is the share of simulated values that part as far.
func (t *SplitTest) p(n, draws int, share float64) float64 {
	null := t.shares(simulation{min(n, mostSimulated), draws})
	below, _ := slices.BinarySearch(null, share)
	return float64(len(null)-below+1) / float64(len(null)+1)
}

// bestSplit is where sorted values part, and the share of the variance between
// the parts.
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
		t.null[of] = simulated(of.values, of.draws, func(values []float64) float64 {
			slices.Sort(values)
			_, share := bestSplit(values)
			return share
		})
	}
	return t.null[of]
}
