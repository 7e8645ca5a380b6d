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

// SplitTest looks for values that lie in two groups. It remembers the
// distributions that it compares with. The zero value is ready; it is for one
// goroutine at a time.
type SplitTest struct {
	null map[int][]float64 // shares of simulated values, sorted, by their number
}

// Split parts the values where the share of their variance that lies between
// the groups is greatest; no group has fewer than two values, so that an
// outlier is none. p is by simulation with a fixed seed, no less than 1/5000.
func (t *SplitTest) Split(values []float64) Split {
	if len(values) < leastSplit {
		return Split{P: 1}
	}
	sorted := slices.Sorted(slices.Values(values))
	at, share := bestSplit(sorted)
	null := t.shares(len(values))
	below, _ := slices.BinarySearch(null, share)
	return Split{
		Low: sorted[:at], High: sorted[at:],
		P: float64(len(null)-below+1) / float64(len(null)+1),
	}
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

func (t *SplitTest) shares(n int) []float64 {
	if t.null[n] == nil {
		if t.null == nil {
			t.null = map[int][]float64{}
		}
		t.null[n] = simulated(n, func(values []float64) float64 {
			slices.Sort(values)
			_, share := bestSplit(values)
			return share
		})
	}
	return t.null[n]
}
