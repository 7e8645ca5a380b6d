package stat

import (
	"math"
	"slices"
)

// Drift is the change of equally spaced values over time.
type Drift struct {
	Slope float64 // Theil–Sen: the median change from one value to the next
	P     float64 // Mann–Kendall, two-sided, of the hypothesis that the order of the values means nothing
}

// allSlopes is the number of values up to which Slope is the median over all pairs. With
// more values only pairs half the series apart count (Theil's incomplete method).
const allSlopes = 500

// MinTrend returns the smallest P that Trend can give for n values. Values that rise
// throughout, or fall throughout, give this P.
func MinTrend(n int) float64 {
	p := 2.0
	for k := 2; k <= n; k++ {
		p /= float64(k)
	}
	return min(p, 1)
}

// Trend tests the values, in order of time, for a drift in one direction. The test is
// exact up to 60 values, ties included. Fewer than two values give slope 0 and P 1.
func Trend(values []float64) Drift {
	n := len(values)
	if n < 2 {
		return Drift{P: 1}
	}
	var slopes []float64
	score, pairs := 0, 0 // rising minus falling pairs; pairs that differ
	for i, early := range values {
		for j, late := range values[i+1:] {
			if n <= allSlopes || j+1 == n/2 {
				slopes = append(slopes, (late-early)/float64(j+1))
			}
			switch {
			case late > early:
				score, pairs = score+1, pairs+1
			case late < early:
				score, pairs = score-1, pairs+1
			}
		}
	}
	return Drift{Slope: Median(slopes), P: kendall(values, score, pairs)}
}

// kendall returns the two-sided p of a Mann–Kendall score.
func kendall(values []float64, score, pairs int) float64 {
	groups := tieGroups(values)
	size := math.Abs(float64(score))
	if n := float64(len(values)); n > exactRanks {
		variance := n * (n - 1) * (2*n + 5)
		for _, t := range groups {
			variance -= float64(t * (t - 1) * (2*t + 5))
		}
		if variance <= 0 {
			return 1
		}
		return normalP(math.Max(0, size-1) / math.Sqrt(variance/18))
	}
	// ways is the distribution of the number of falling pairs over all orders of the
	// values. The groups of equal values are placed one after another. Each group adds
	// its falling pairs with the values placed before it: a Mann–Whitney count.
	ways := []float64{1}
	placed := 0
	for _, t := range groups {
		ways = convolve(ways, fallingPairs(placed, t))
		placed += t
	}
	var far, all float64
	for falling, w := range ways {
		all += w
		if math.Abs(float64(pairs-2*falling)) >= size {
			far += w
		}
	}
	return min(1, far/all)
}

// tieGroups returns the sizes of the groups of equal values.
func tieGroups(values []float64) []int {
	sorted := slices.Sorted(slices.Values(values))
	var groups []int
	for i, v := range sorted {
		if i > 0 && v == sorted[i-1] {
			groups[len(groups)-1]++
			continue
		}
		groups = append(groups, 1)
	}
	return groups
}

// fallingPairs returns the distribution of the number of falling pairs between placed
// smaller values and t equal larger values: element k is the share of all orders in which
// k pairs have the larger value first.
func fallingPairs(placed, t int) []float64 {
	ranks := make([]int, placed+t)
	for i := range ranks {
		ranks[i] = i + 1
	}
	sums := rankSums(ranks, t)
	minimum := t * (t + 1) / 2
	counts := sums[minimum : minimum+placed*t+1]
	all := 0.0
	for _, c := range counts {
		all += c
	}
	shares := make([]float64, len(counts))
	for i, c := range counts {
		shares[i] = c / all
	}
	return shares
}

func convolve(a, b []float64) []float64 {
	out := make([]float64, len(a)+len(b)-1)
	for i, x := range a {
		for j, y := range b {
			out[i+j] += x * y
		}
	}
	return out
}
