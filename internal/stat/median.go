package stat

import (
	"fmt"
	"math"
	"slices"
)

// Interval is a confidence interval. Its Confidence is the one that it attains, which is
// at least the one asked for.
type Interval struct {
	Low, High  float64
	Confidence float64
}

// TooFewError says that N values give no interval at Confidence, and that Needs would.
type TooFewError struct {
	N, Needs   int
	Confidence float64
}

func (e *TooFewError) Error() string {
	return fmt.Sprintf("no interval with n=%d (needs %d for %g %%)", e.N, e.Needs, e.Confidence*100)
}

// MedianInterval returns the narrowest interval between the k-th smallest and the
// k-th largest value that holds the median with at least the given
// confidence, whatever the distribution: the number of values below the
// median is binomial (n, 1/2). The interval of golang.org/x/perf omits a value at one end
// only, if that is enough, so a metric and its inverse would get different intervals.
// With too few values the error is a *TooFewError.
func MedianInterval(values []float64, confidence float64) (Interval, error) {
	n := len(values)
	rank, attained := 0, 0.0
	outside := 0.0 // probability that fewer than k values lie below the median
	for k := 1; k <= (n+1)/2; k++ {
		outside += binomialHalf(n, k-1)
		if 1-2*outside < confidence {
			break
		}
		rank, attained = k, 1-2*outside
	}
	if rank == 0 {
		return Interval{}, &TooFewError{N: n, Needs: NeedsForInterval(confidence), Confidence: confidence}
	}
	sorted := slices.Sorted(slices.Values(values))
	return Interval{Low: sorted[rank-1], High: sorted[n-rank], Confidence: attained}, nil
}

// NeedsForInterval returns the smallest number of values whose whole range holds
// the median with the given confidence: 6 for 95 %.
func NeedsForInterval(confidence float64) int {
	n := 2
	for 1-math.Ldexp(1, 1-n) < confidence && n < 64 {
		n++
	}
	return n
}

// binomialHalf is the probability of k heads in n throws of a fair coin.
func binomialHalf(n, k int) float64 {
	all, _ := math.Lgamma(float64(n + 1))
	heads, _ := math.Lgamma(float64(k + 1))
	tails, _ := math.Lgamma(float64(n - k + 1))
	return math.Exp(all - heads - tails - float64(n)*math.Ln2)
}
