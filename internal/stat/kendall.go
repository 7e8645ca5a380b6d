package stat

import (
	"math"

	"github.com/aclements/go-moremath/mathx"
)

// KendallTau returns Kendall's tau-b of paired values: the share of pairs in the same
// order minus the share of pairs in the opposite order, corrected for ties. It is NaN if
// all values of a side are equal, or if there are fewer than two values.
func KendallTau(x, y []float64) float64 {
	var sum, ofX, ofY float64
	for i := range x {
		for j := range i {
			a, b := mathx.Sign(x[i]-x[j]), mathx.Sign(y[i]-y[j])
			sum, ofX, ofY = sum+a*b, ofX+a*a, ofY+b*b
		}
	}
	return sum / math.Sqrt(ofX*ofY) // 0/0 is NaN
}

// KendallInterval returns a confidence interval for the true tau of n pairs of values,
// given the tau found. The interval holds every true tau from which the tau found is at
// most the normal quantile of level away, in standard deviations. The variance is taken as
// that of unrelated values, 2(2n+5)/(9n(n-1)), times 1-tau². Of samples from bivariate
// normals, such intervals hold the true tau in 94 to 100 % at a level of 95 %. ok is false
// for fewer than five pairs.
func KendallInterval(tau float64, n int, level float64) (low, high float64, ok bool) {
	if n < 5 || math.IsNaN(tau) {
		return 0, 0, false
	}
	z, pairs := math.Sqrt2*math.Erfinv(level), float64(n)
	c := z * z * 2 * (2*pairs + 5) / (9 * pairs * (pairs - 1))
	half := math.Sqrt(c * (1 + c - tau*tau))
	return min(tau, (tau-half)/(1+c)), max(tau, (tau+half)/(1+c)), true
}
