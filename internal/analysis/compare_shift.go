package analysis

import (
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/stat"
)

// This file compares two independent samples of rounds by their ratio. The
// estimate is Hodges and Lehmann's on the logarithmic scale: the median of the
// ratios of every new value to every old one. Its interval is made of the
// ratios by which the old values can be scaled without the exact Mann–Whitney
// test telling them from the new ones, so interval and test never disagree.

// shift is how much larger the new values are than the old ones.
type shift struct {
	ratio     float64 // NaN where either side has no value
	low, high float64 // of the ratio, NaN with too few rounds; +Inf where old values are zero
}

func (s shift) bounded() bool { return !math.IsNaN(s.low) }

// ratioShift compares; values are not negative.
func ratioShift(was, now []float64, confidence float64) shift {
	if len(was) == 0 || len(now) == 0 {
		return shift{math.NaN(), math.NaN(), math.NaN()}
	}
	ratios := make([]float64, 0, len(was)*len(now))
	for _, o := range was {
		for _, n := range now {
			switch {
			case o == n: // nothing lost is as good as nothing lost
				ratios = append(ratios, 1)
			default:
				ratios = append(ratios, n/o)
			}
		}
	}
	slices.Sort(ratios)
	s := shift{ratio: middle(ratios), low: math.NaN(), high: math.NaN()}
	if k := outermost(len(was), len(now), 1-confidence); k > 0 {
		s.low, s.high = ratios[k-1], ratios[len(ratios)-k]
	}
	return s
}

// middle is the geometric mean of the two middle values of sorted ratios, or
// the middle one.
func middle(sorted []float64) float64 {
	low, high := sorted[(len(sorted)-1)/2], sorted[len(sorted)/2]
	if low == high {
		return low
	}
	return math.Sqrt(low) * math.Sqrt(high)
}

// exactShift is the number of rounds on both sides together up to which the
// distribution of the rank sum is counted out.
const exactShift = 60

// outermost is k such that the k-th smallest and the k-th largest of the m·n
// ratios hold the true one with at least the confidence 1-alpha: the largest
// k with P(U < k) ≤ alpha/2, where U counts the pairs whose new value is the
// smaller one; 0 where the rounds are too few.
func outermost(m, n int, alpha float64) int {
	if m+n > exactShift {
		sigma := math.Sqrt(float64(m) * float64(n) * float64(m+n+1) / 12)
		return max(0, int(float64(m*n)/2-math.Sqrt2*math.Erfinv(1-alpha)*sigma))
	}
	ways := pairCounts(m, n)
	all, below := 0.0, 0.0
	for _, w := range ways {
		all += w
	}
	for k, w := range ways {
		if below += w; below/all > alpha/2 {
			return k
		}
	}
	return 0
}

// pairCounts are the ways to order m and n values by the number of pairs in
// which a value of the second is smaller: the coefficients of the Gaussian
// binomial coefficient, ∏ (1-q^(n+i)) / (1-q^i).
func pairCounts(m, n int) []float64 {
	ways := make([]float64, m*n+1)
	ways[0] = 1
	for i := 1; i <= m; i++ {
		for u := len(ways) - 1; u >= n+i; u-- {
			ways[u] -= ways[u-n-i]
		}
		for u := i; u < len(ways); u++ {
			ways[u] += ways[u-i]
		}
	}
	return ways
}

// exceeds is the one-sided p of the hypothesis that the new values are at most
// limit times the old ones (worse is "more", so lower is better), or at least
// that where worse is less.
func exceeds(was, now []float64, limit float64, better string) float64 {
	scaled := make([]float64, len(was))
	for i, v := range was {
		scaled[i] = v * limit
	}
	r := ratioShift(scaled, now, 0).ratio
	if math.IsNaN(r) || better == "higher" && r >= 1 || better != "higher" && r <= 1 {
		return 1
	}
	// Half of both tails; with ties the other tail can be empty, and no order
	// is rarer than one of all.
	return max(stat.MannWhitney(scaled, now), stat.LeastMannWhitney(len(was), len(now))) / 2
}

// leastExceeds is the smallest p that exceeds can give.
func leastExceeds(was, now int) float64 { return stat.LeastMannWhitney(was, now) / 2 }
