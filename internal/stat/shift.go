package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
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

// Widened is the shift with an interval whose ends lie by so many times farther from the
// ratio, as factors.
func (s Shift) Widened(by float64) Shift {
	if s.Ratio > 0 && by > 1 {
		s.Low, s.High = s.Ratio*math.Pow(s.Low/s.Ratio, by), s.Ratio*math.Pow(s.High/s.Ratio, by)
	}
	return s
}

// RatioShift is the shift from was to now, whose values are not negative, with
// an interval of at least that confidence.
func RatioShift(was, now []float64, confidence float64) Shift {
	if len(was) == 0 || len(now) == 0 {
		return Shift{math.NaN(), math.NaN(), math.NaN()}
	}
	p, all := newPairs(was, now), len(was)*len(now)
	s := Shift{Ratio: p.ratio((all - 1) / 2), Low: math.NaN(), High: math.NaN()}
	if all%2 == 0 {
		if high := p.ratio(all / 2); high != s.Ratio {
			s.Ratio = math.Sqrt(s.Ratio) * math.Sqrt(high)
		}
	}
	if k := Outermost(len(was), len(now), 1-confidence); k > 0 {
		s.Low, s.High = p.ratio(k-1), p.ratio(all-k)
	}
	return s
}

// ratioPairs are the ratios of every value of now to every one of was. They are
// never all written down, which thousands of rounds would make millions of.
type ratioPairs struct {
	was, now []float64 // now is sorted, so that the ratios to one old value are
}

func newPairs(was, now []float64) ratioPairs {
	return ratioPairs{was, slices.Sorted(slices.Values(now))}
}

func (p ratioPairs) of(i, j int) float64 {
	if p.was[i] == p.now[j] { // nothing lost is as good as nothing lost
		return 1
	}
	return p.now[j] / p.was[i]
}

// ratio is the k-th smallest ratio, from 0: by halving, as quicksort would,
// what is left of each old value's row.
func (p ratioPairs) ratio(k int) float64 {
	low, high := make([]int, len(p.was)), make([]int, len(p.was)) // what is left of each row
	for i := range high {
		high[i] = len(p.now)
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
		less, most := 0, 0
		for i := range low {
			n := high[i] - low[i]
			below[i] = low[i] + sort.Search(n, func(j int) bool { return p.of(i, low[i]+j) >= pivot })
			upTo[i] = low[i] + sort.Search(n, func(j int) bool { return p.of(i, low[i]+j) > pivot })
			less, most = less+below[i]-low[i], most+upTo[i]-low[i]
		}
		switch {
		case k < less:
			high = below
		case k < most:
			return pivot
		default:
			low, k = upTo, k-most
		}
	}
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
