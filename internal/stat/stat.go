// Package stat holds pure statistics for few and skewed values: medians with
// distribution-free intervals, exact rank and permutation tests, corrections
// for many comparisons, drift, changes of level, groups, and how small a
// difference a test can see. It imports the standard library only, knows no
// runs or metrics, and assumes no distribution unless it says so. Functions leave their
// arguments as they are and expect finite values. Next: median.go, then
// ranks.go, paired.go and drift.go for the tests, cluster.go for groups,
// detect.go for what a test can see.
package stat

import (
	"math"
	"slices"
)

// Median returns the middle value, or the mean of the two middle values; NaN if there is
// no value.
func Median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	if n%2 == 1 {
		return sorted[n/2]
	}
	return sorted[n/2-1]/2 + sorted[n/2]/2
}

// LowerMedian returns the middle value, or the lower of the two middle values, so that
// the result is always a measured value; NaN if there is no value.
func LowerMedian(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return slices.Sorted(slices.Values(values))[(len(values)-1)/2]
}

// normalP returns the two-sided p of a standard normal score.
func normalP(z float64) float64 {
	return math.Erfc(math.Abs(z) / math.Sqrt2)
}
