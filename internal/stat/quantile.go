package stat

import (
	"math"
	"slices"
	"sort"
)

// This file compares quantiles of many requests that came in a few rounds. The quantile
// is that of all rounds' requests together. Requests of one round are no independent
// values, one stall makes hundreds of slow ones, so that rounds are what
// intervals and p count.

// Requests are the values of one round's requests, as counts of distinct values.
type Requests struct {
	logs  []float64 // of the distinct values, ascending
	above []float64 // how many requests have a larger value, by distinct value
	total float64
}

// NewRequests takes positive distinct values, ascending, and how often each came.
func NewRequests(values []float64, counts []int64) Requests {
	r := Requests{logs: make([]float64, len(values)), above: make([]float64, len(values))}
	for i, v := range slices.Backward(values) {
		r.logs[i], r.above[i] = math.Log(v), r.total
		r.total += float64(counts[i])
	}
	return r
}

// over is how many requests have a logarithm larger than x.
func (r *Requests) over(x float64) float64 {
	i, exact := slices.BinarySearch(r.logs, x)
	switch {
	case exact:
		return r.above[i]
	case i == 0:
		return r.total
	}
	return r.above[i-1]
}

// nearly is how near the ends of an interval are found, relative.
const nearly = 2e-4

// farLog is the logarithm of the largest factor that is looked at.
const farLog = 14

// tailCaution is how much rarer an interval may end below the truth than above it, where
// the quantile is of a tail: the worst rounds make it, few rounds often have none of these,
// and so the excess of a round is not symmetric. Found by simulation (TestSimulation).
const tailCaution = 10

// QuantileInterval holds the quantile (level 0 to 1) of all requests of such rounds with
// the confidence: the values that a sign-flip test of the rounds does not reject. The
// test asks whether as many requests lie above the value as should: each round
// has more or fewer than its share, and either is as likely. The upper end of a tail's interval
// is more cautious. ok is false with too few
// rounds: fewer than 6 for 95 %.
func QuantileInterval(rounds []Requests, level, confidence float64) (low, high float64, ok bool) {
	alpha := 1 - confidence
	if LeastSignedRank(len(rounds)) > alpha {
		return 0, 0, false
	}
	flips, excess := signFlips(len(rounds)), make([]float64, len(rounds))
	rejectedAt := func(alpha float64) func(x float64) bool {
		return func(x float64) bool {
			for i := range rounds {
				excess[i] = rounds[i].over(x) - (1-level)*rounds[i].total
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
		upper = max(alpha/tailCaution, LeastSignedRank(len(rounds)))
	}
	high, ok = edge(middle, 1, rejectedAt(upper))
	return math.Exp(low), math.Exp(high), ok
}

// QuantileRatio is the ratio of two quantiles, each of all requests of its rounds
// together, with interval and p. values[i] and base[i] are of the same round. The
// hypothesis of a ratio r is that values and r times base come from one distribution in
// each round, so that they could change places. The test counts, in each round, how
// many requests more lie above the common quantile on the one side than on the other,
// and flips the signs of these differences. The interval holds the ratios that it does
// not reject. Low and High are NaN with too few rounds, fewer than 6 for 95 %, and where
// the requests above the quantile come from so few rounds that no ratio is rejected.
// inflation widens the interval, as in ComparePaired.
func QuantileRatio(values, base []Requests, level, confidence, inflation float64) (s Shift, p float64) {
	middle := pooledQuantile(values, nil, 0, level) - pooledQuantile(base, nil, 0, level)
	s = Shift{Ratio: math.Exp(middle), Low: math.NaN(), High: math.NaN()}
	flips, differences := signFlips(len(values)), make([]float64, len(values))
	own, others := total(values), total(base)
	at := func(ratio float64) float64 {
		q := pooledQuantile(values, base, ratio, level)
		for i := range values {
			differences[i] = values[i].over(q)/own - base[i].over(q-ratio)/others
		}
		return flipP(differences, flips)
	}
	p = at(middle * (1 - 1/inflation))
	if alpha := 1 - confidence; LeastSignedRank(len(values)) <= alpha {
		rejected := func(ratio float64) bool { return at(ratio) <= alpha }
		low, bounded := edge(middle, -1, rejected)
		high, both := edge(middle, 1, rejected)
		if bounded && both {
			s.Low, s.High = math.Exp(low), math.Exp(high)
		}
	}
	return s.Widened(inflation), p
}

// edge is the last place from middle on, upwards or downwards, that is not rejected; ok
// is false where there is none.
func edge(middle, direction float64, rejected func(x float64) bool) (x float64, ok bool) {
	inside, step := 0.0, 0.01
	for !rejected(middle + direction*(inside+step)) {
		if inside, step = inside+step, 2*step; inside > farLog {
			return 0, false
		}
	}
	for step > nearly {
		if step /= 2; !rejected(middle + direction*(inside+step)) {
			inside += step
		}
	}
	return middle + direction*(inside+step), true
}

// flipP is the share of the sign flips whose sum is as far from 0 as that of the
// differences.
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

// pooledQuantile is the logarithm of the quantile of all requests of values and, times
// e to the shift, of base, where each side counts as much as the other.
func pooledQuantile(values, base []Requests, shift, level float64) float64 {
	own, others := total(values), max(1, total(base))
	wanted := 1 - level
	if len(base) > 0 {
		wanted *= 2
	}
	enough := func(x float64) bool {
		above, beside := 0.0, 0.0
		for i := range values {
			above += values[i].over(x)
		}
		for i := range base {
			beside += base[i].over(x - shift)
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
	for high-low > nearly/4 {
		if middle := (low + high) / 2; enough(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	// The value itself, where one of values lies there: high is just above it.
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

// RoundsBeyond is how many rounds the requests from the quantile of all rounds' requests on
// come from: the number of rounds of equal weight that would be as unlike each other. Ten slow
// requests of one stall are one cluster and not ten.
func RoundsBeyond(rounds []Requests, level float64) float64 {
	q := pooledQuantile(rounds, nil, 0, level) - nearly // with those of the quantile's own value
	sum, squares := 0.0, 0.0
	for i := range rounds {
		n := rounds[i].over(q)
		sum, squares = sum+n, squares+n*n
	}
	return sum * sum / squares
}
