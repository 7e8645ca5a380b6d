package stat

import (
	"math"
	"slices"
	"sort"
)

// This file compares quantiles of many requests in a few rounds. A quantile is that of all
// rounds' requests together. Requests of one round are not independent: one stall delays
// hundreds. So intervals and p take rounds, not requests, as the independent values.

// Requests are the values of one round's requests, as counts of distinct values.
type Requests struct {
	logs  []float64 // of the distinct values, ascending
	above []float64 // how many requests have a larger value, by distinct value
	total float64
}

// NewRequests takes positive distinct values, ascending, and how often each occurred.
func NewRequests(values []float64, counts []int64) Requests {
	r := Requests{logs: make([]float64, len(values)), above: make([]float64, len(values))}
	for i, v := range slices.Backward(values) {
		r.logs[i], r.above[i] = math.Log(v), r.total
		r.total += float64(counts[i])
	}
	return r
}

// countAbove returns how many requests have a logarithm larger than x.
func (r *Requests) countAbove(x float64) float64 {
	i, exact := slices.BinarySearch(r.logs, x)
	switch {
	case exact:
		return r.above[i]
	case i == 0:
		return r.total
	}
	return r.above[i-1]
}

// precision is the largest error of the ends of an interval, as a logarithm.
const precision = 2e-4

// farthest is where the search for an interval's end stops: this distance from the
// quantile, as a logarithm.
const farthest = 14

// tailCaution divides alpha at the upper end of the interval of a tail's quantile. The
// worst rounds make the tail, and a few rounds often contain none of the worst. So the
// excess of a round is not symmetric, and without caution the interval would end below
// the truth too often. TestSimulation gave the factor.
const tailCaution = 10

// QuantileInterval returns an interval that holds the quantile (level 0 to 1) of all
// requests of such rounds with the confidence. The interval consists of the values that a
// sign-flip test of the rounds does not reject. The hypothesis of the test is that a round
// has as likely more as fewer requests above the value than the level implies. The upper
// end of a tail's interval is more cautious (tailCaution). ok is false with too few rounds:
// fewer than 6 for 95 %.
func QuantileInterval(rounds []Requests, level, confidence float64) (low, high float64, ok bool) {
	alpha := 1 - confidence
	if MinSignedRank(len(rounds)) > alpha {
		return 0, 0, false
	}
	flips, excess := signFlips(len(rounds)), make([]float64, len(rounds))
	rejectedAt := func(alpha float64) func(x float64) bool {
		return func(x float64) bool {
			for i := range rounds {
				excess[i] = rounds[i].countAbove(x) - (1-level)*rounds[i].total
			}
			return flipP(excess, flips) <= alpha
		}
	}
	middle := pooledQuantile(rounds, nil, 0, level)
	low, ok = edge(middle, -1, rejectedAt(alpha))
	if !ok {
		return 0, 0, false
	}
	upper := alpha
	if level > 0.5 {
		upper = max(alpha/tailCaution, MinSignedRank(len(rounds)))
	}
	high, ok = edge(middle, 1, rejectedAt(upper))
	return math.Exp(low), math.Exp(high), ok
}

// QuantileRatio returns the ratio of two quantiles, each of all requests of its rounds
// together, with interval and p. values[i] and base[i] are of the same round. The
// hypothesis of a ratio r is that values and r times base come from one distribution in
// each round, so that they could change places. In each round the test compares the two
// sides' shares of requests above the common quantile, and flips the signs of these
// differences. The interval holds the ratios that the test does not reject. Low and High
// are NaN with too few rounds (fewer than 6 for 95 %), and if the requests above the
// quantile come from so few rounds that the test rejects no ratio. inflation widens the
// interval, as in ComparePaired.
func QuantileRatio(values, base []Requests, level, confidence, inflation float64) (s Shift, p float64) {
	middle := pooledQuantile(values, nil, 0, level) - pooledQuantile(base, nil, 0, level)
	s = Shift{Ratio: math.Exp(middle), Low: math.NaN(), High: math.NaN()}
	flips, differences := signFlips(len(values)), make([]float64, len(values))
	own, others := total(values), total(base)
	pOf := func(logRatio float64) float64 {
		q := pooledQuantile(values, base, logRatio, level)
		for i := range values {
			differences[i] = values[i].countAbove(q)/own - base[i].countAbove(q-logRatio)/others
		}
		return flipP(differences, flips)
	}
	p = pOf(middle * (1 - 1/inflation))
	if alpha := 1 - confidence; MinSignedRank(len(values)) <= alpha {
		rejected := func(logRatio float64) bool { return pOf(logRatio) <= alpha }
		low, bounded := edge(middle, -1, rejected)
		high, both := edge(middle, 1, rejected)
		if bounded && both {
			s.Low, s.High = math.Exp(low), math.Exp(high)
		}
	}
	return s.Widen(inflation), p
}

// edge searches from middle upwards (direction 1) or downwards (-1) for the place where
// rejection begins. ok is false if nothing is rejected up to farthest.
func edge(middle, direction float64, rejected func(x float64) bool) (x float64, ok bool) {
	inside, step := 0.0, 0.01
	for !rejected(middle + direction*(inside+step)) {
		if inside, step = inside+step, 2*step; inside > farthest {
			return 0, false
		}
	}
	for step > precision {
		if step /= 2; !rejected(middle + direction*(inside+step)) {
			inside += step
		}
	}
	return middle + direction*(inside+step), true
}

// flipP returns the share of the sign flips for which the sum of the differences is at
// least as far from 0 as without a flip.
func flipP(differences []float64, flips [][]float64) float64 {
	observed := 0.0
	for _, d := range differences {
		observed += d
	}
	observed = math.Abs(observed) * (1 - 1e-9) // rounding must not hide a tie
	far := 0
	for _, signs := range flips {
		sum := 0.0
		for i, d := range differences {
			sum += signs[i] * d
		}
		if math.Abs(sum) >= observed {
			far++
		}
	}
	return float64(far) / float64(len(flips))
}

// pooledQuantile returns the logarithm of the quantile of all requests of both sides
// together, after the values of base are multiplied by e to the shift. Both sides have
// the same weight. base may be nil.
func pooledQuantile(values, base []Requests, shift, level float64) float64 {
	own, others := total(values), max(1, total(base))
	wanted := 1 - level
	if len(base) > 0 {
		wanted *= 2
	}
	enough := func(x float64) bool {
		above, beside := 0.0, 0.0
		for i := range values {
			above += values[i].countAbove(x)
		}
		for i := range base {
			beside += base[i].countAbove(x - shift)
		}
		return above/own+beside/others <= wanted*(1+1e-12)
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, r := range values {
		low, high = min(low, r.logs[0]), max(high, r.logs[len(r.logs)-1])
	}
	for _, r := range base {
		low, high = min(low, r.logs[0]+shift), max(high, r.logs[len(r.logs)-1]+shift)
	}
	for high-low > precision/4 {
		if middle := (low + high) / 2; enough(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	// If values contains a value just below high, that value is the quantile.
	best := high
	for _, r := range values {
		if i := sort.SearchFloat64s(r.logs, high); i > 0 && r.logs[i-1] >= low && enough(r.logs[i-1]) {
			best = min(best, r.logs[i-1])
		}
	}
	return best
}

func total(rounds []Requests) float64 {
	sum := 0.0
	for _, r := range rounds {
		sum += r.total
	}
	return sum
}

// RoundsBeyond returns from how many rounds the requests at and above the quantile come:
// the effective number, (sum of counts)² / (sum of squared counts). Ten slow requests of
// one stall are one cluster and not ten independent values.
func RoundsBeyond(rounds []Requests, level float64) float64 {
	q := pooledQuantile(rounds, nil, 0, level) - precision // so that requests with exactly the quantile's value count, too
	sum, squares := 0.0, 0.0
	for i := range rounds {
		n := rounds[i].countAbove(q)
		sum, squares = sum+n, squares+n*n
	}
	return sum * sum / squares
}
