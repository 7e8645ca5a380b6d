package stat

import "math"

// StoppedConfidence is the level of intervals in a run that ends when they are narrow
// enough. Such a run looks at them after every round, and ends the sooner the smaller
// its spread happens to come out: of 1,000 simulated runs each, intervals of this
// level that ended so held the truth in at least 95 % where rounds are independent,
// normal, of heavy tails or of two levels (TestStoppedCoverage).
const StoppedConfidence = 0.98

// HalfWidth is how far an interval of a ratio reaches from its middle, as a share:
// 0.05 from 0.95 to 1.05, about. Both ends are above 0; else it is infinite.
func HalfWidth(low, high float64) float64 {
	if !(low > 0) || !(high > 0) {
		return math.Inf(1)
	}
	return math.Expm1((math.Log(high) - math.Log(low)) / 2)
}
