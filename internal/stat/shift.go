package stat

import (
	"math"
	"slices"
)

// This file compares two independent samples of rounds by their ratio. The
// estimate is Hodges and Lehmann's on the logarithmic scale: the median of the
// ratios of every new value to every old one. Its interval is made of the
// ratios by which the old values can be scaled without the exact Mann–Whitney
// test telling them from the new ones, so interval and test never disagree.

// Shift is how much larger the values of one sample are than those of another.
type Shift struct {
	Ratio     float64 // NaN where either side has no value
	Low, High float64 // of the ratio, NaN with too few values; +Inf where old values are zero
}

// Bounded says that there is an interval.
func (s Shift) Bounded() bool { return !math.IsNaN(s.Low) }

// RatioShift is the shift from was to now, whose values are not negative, with
// an interval of at least that confidence.
func RatioShift(was, now []float64, confidence float64) Shift {
	if len(was) == 0 || len(now) == 0 {
		return Shift{math.NaN(), math.NaN(), math.NaN()}
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
	s := Shift{Ratio: middle(ratios), Low: math.NaN(), High: math.NaN()}
	if k := Outermost(len(was), len(now), 1-confidence); k > 0 {
		s.Low, s.High = ratios[k-1], ratios[len(ratios)-k]
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

// Outermost is k such that the k-th smallest and the k-th largest of the m·n
// ratios hold the true one with at least the confidence 1-alpha: the largest
// k with P(U < k) ≤ alpha/2, where U counts the pairs whose new value is the
// smaller one; 0 where the rounds are too few.
func Outermost(m, n int, alpha float64) int {
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
