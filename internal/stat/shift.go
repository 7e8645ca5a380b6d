package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
)

// This file compares two independent samples of rounds by their ratio. The estimate is
// that of Hodges and Lehmann on the logarithmic scale: the median of the ratios of every
// new value to every old value. The interval holds every x for which the exact
// Mann–Whitney test does not reject that new values and old values times x are alike, so
// interval and test never disagree.

// Shift is how much larger the values of one sample are than those of another.
type Shift struct {
	Ratio     float64 // NaN if a side has no value
	Low, High float64 // interval of the ratio; NaN with too few values; may be +Inf if old values are zero
}

// Bounded says whether there is an interval.
func (s Shift) Bounded() bool { return !math.IsNaN(s.Low) }

// Widen returns the shift with a wider interval: the distance of both ends from the
// ratio, as logarithms, is multiplied by the factor.
func (s Shift) Widen(by float64) Shift {
	if s.Ratio > 0 && by > 1 {
		s.Low, s.High = s.Ratio*math.Pow(s.Low/s.Ratio, by), s.Ratio*math.Pow(s.High/s.Ratio, by)
	}
	return s
}

// RatioShift returns the shift from the old values (before) to the new ones (after), with an
// interval of at least the confidence. No value may be negative.
func RatioShift(before, after []float64, confidence float64) Shift {
	if len(before) == 0 || len(after) == 0 {
		return Shift{math.NaN(), math.NaN(), math.NaN()}
	}
	p, all := newPairs(before, after), len(before)*len(after)
	s := Shift{Ratio: p.ratio((all - 1) / 2), Low: math.NaN(), High: math.NaN()}
	if all%2 == 0 {
		if high := p.ratio(all / 2); high != s.Ratio {
			s.Ratio = math.Sqrt(s.Ratio) * math.Sqrt(high)
		}
	}
	if k := Outermost(len(before), len(after), 1-confidence); k > 0 {
		s.Low, s.High = p.ratio(k-1), p.ratio(all-k)
	}
	return s
}

// ratioPairs stands for the ratios of every value of after to every value of before. The
// ratios are computed when needed: thousands of rounds would have millions of ratios.
type ratioPairs struct {
	before, after []float64 // after is sorted, so the ratios to each old value are in ascending order
}

func newPairs(before, after []float64) ratioPairs {
	return ratioPairs{before, slices.Sorted(slices.Values(after))}
}

func (p ratioPairs) of(i, j int) float64 {
	if p.before[i] == p.after[j] { // also if both are zero, such as no loss before and after
		return 1
	}
	return p.after[j] / p.before[i]
}

// ratio returns the k-th smallest ratio, from 0, by quickselect. The candidates are a
// range in the row of ratios of each old value.
func (p ratioPairs) ratio(k int) float64 {
	low, high := make([]int, len(p.before)), make([]int, len(p.before)) // the range in each row
	for i := range high {
		high[i] = len(p.after)
	}
	for rng := rand.New(rand.NewPCG(1, 1)); ; {
		left := 0
		for i := range low {
			left += high[i] - low[i]
		}
		nth, pivot := rng.IntN(left), 0.0
		for i := range low {
			if n := high[i] - low[i]; nth < n {
				pivot = p.of(i, low[i]+nth)
				break
			}
			nth -= high[i] - low[i]
		}
		below, upTo := make([]int, len(low)), make([]int, len(low))
		less, maximum := 0, 0
		for i := range low {
			n := high[i] - low[i]
			below[i] = low[i] + sort.Search(n, func(j int) bool { return p.of(i, low[i]+j) >= pivot })
			upTo[i] = low[i] + sort.Search(n, func(j int) bool { return p.of(i, low[i]+j) > pivot })
			less, maximum = less+below[i]-low[i], maximum+upTo[i]-low[i]
		}
		switch {
		case k < less:
			high = below
		case k < maximum:
			return pivot
		default:
			low, k = upTo, k-maximum
		}
	}
}

// Outermost returns the largest k for which the k-th smallest and the k-th largest of the
// m·n ratios enclose the true ratio with at least the confidence 1-alpha: the largest k
// with P(U < k) ≤ alpha/2, where U counts the pairs whose new value is smaller. It is 0
// with too few rounds.
func Outermost(m, n int, alpha float64) int {
	if m+n > exactRanks {
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

// pairCounts returns the number of ways to order m old and n new values, by the number of
// pairs whose new value is smaller: the coefficients of the Gaussian binomial coefficient,
// ∏ (1-q^(n+i)) / (1-q^i).
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
