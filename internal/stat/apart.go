package stat

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// This file tests which of several series differ. All series were measured in the same
// rounds, so that a disturbance of a whole round cancels out of their differences.

// maxFlips is how many sign flips are tried: all of them up to 13 rounds.
const maxFlips = 1 << 12

// Untestable is the p of a pair whose rounds are too few for any p up to alpha. Such a
// pair counts as not apart, because Untestable <= alpha is false.
var Untestable = math.NaN()

// ComparePairs tests every pair of series for a difference and returns the p values, adjusted
// for all pairs: p[i][j] belongs to series i and j, and is 1 on the diagonal. A series
// holds one value for each round, NaN where the round has none. A caller that takes
// pairs with p <= alpha for different makes any false claim with a chance of at most
// alpha, whichever other series differ.
//
// The test is a step-down max-T permutation test (Westfall and Young 1993;
// Romano and Wolf 2005). Under the hypothesis that two series are alike, their
// difference in a round is as likely as its negative. The test negates all differences
// of a round together, in every combination of rounds (beyond 13 rounds in 4,096 random
// combinations with a fixed seed), so the noise of one series may be larger than that of
// another. The statistic is the pair's mean difference divided by the root of a sum: the
// mean square of the pair's differences plus the median of these mean squares over all
// pairs. The first term alone would find little in few rounds. The second alone would let
// the noisiest series decide for all pairs. Differences are of logarithms if all values
// are positive.
//
// inflation divides the mean differences: 1 for independent rounds, else
// Serial.Inflation, if the noise of a series lasts from round to round.
//
// A pair with fewer common rounds than any p up to alpha takes (6 for 5 %) is
// Untestable and does not count in the adjustment (Tarone 1990).
func ComparePairs(series [][]float64, alpha, inflation float64) (p [][]float64) {
	pairs := testablePairs(takeLogs(series), alpha, inflation)
	p = make([][]float64, len(series))
	for i := range p {
		p[i] = slices.Repeat([]float64{Untestable}, len(series))
		p[i][i] = 1
	}
	if len(pairs) == 0 {
		return p
	}
	rounds := len(pairs[0].differences)
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(b.observed, a.observed) })
	exceeds := make([]int, len(pairs)) // flips in which this or a later pair differs at least as much
	flips := signFlips(rounds)
	for _, signs := range flips {
		maximum := 0.0
		for k, pair := range slices.Backward(pairs) {
			maximum = max(maximum, pair.size(signs))
			if maximum >= pair.observed*(1-1e-12) { // rounding must not hide a tie
				exceeds[k]++
			}
		}
	}
	highest := 0.0
	for k, pair := range pairs {
		highest = max(highest, float64(exceeds[k])/float64(len(flips)))
		p[pair.i][pair.j], p[pair.j][pair.i] = highest, highest
	}
	return p
}

// pair is two series and their differences.
type pair struct {
	i, j        int
	differences []float64 // by round; 0 where a series has no value
	scale       float64
	observed    float64
}

// size returns the pair's statistic for differences with these signs.
func (p *pair) size(signs []float64) float64 {
	sum := 0.0
	for round, d := range p.differences {
		sum += signs[round] * d
	}
	return math.Abs(sum) * p.scale
}

// testablePairs returns the pairs with enough common rounds.
func testablePairs(series [][]float64, alpha, inflation float64) []pair {
	var pairs []pair
	var squares, counts []float64 // the mean square and the number of the differences
	for i := range series {
		for j := i + 1; j < len(series); j++ {
			p := pair{i: i, j: j, differences: make([]float64, len(series[i]))}
			var rounds []int // those that both have
			sum, square := 0.0, 0.0
			for round, a := range series[i] {
				if d := a - series[j][round]; !math.IsNaN(d) {
					rounds, p.differences[round], sum = append(rounds, round), d, sum+d
				}
			}
			n := float64(len(rounds))
			if math.Ldexp(1, 1-len(rounds)) > alpha {
				continue
			}
			for _, round := range rounds {
				p.differences[round] -= (1 - 1/inflation) * sum / n
				square += p.differences[round] * p.differences[round]
			}
			pairs, squares, counts = append(pairs, p), append(squares, square/n), append(counts, n)
		}
	}
	middle := Median(squares)
	for k := range pairs {
		if both := squares[k] + middle; both > 0 {
			pairs[k].scale = 1 / math.Sqrt(counts[k]*both)
		}
		pairs[k].observed = pairs[k].size(slices.Repeat([]float64{1}, len(pairs[k].differences)))
	}
	return pairs
}

// takeLogs returns the logarithms of all values if all are positive, else the values.
func takeLogs(series [][]float64) [][]float64 {
	logs := make([][]float64, len(series))
	for i, values := range series {
		logs[i] = make([]float64, len(values))
		for round, v := range values {
			if v <= 0 {
				return series
			}
			logs[i][round] = math.Log(v)
		}
	}
	return logs
}

// signFlips returns combinations of signs for the rounds. The first combination negates
// nothing. A combination and its opposite give the same sizes, so the first round always
// keeps its sign.
func signFlips(rounds int) [][]float64 {
	count, random := maxFlips, rounds-1 > 12
	if !random {
		count = 1 << max(0, rounds-1)
	}
	r := rand.New(rand.NewPCG(uint64(rounds), 1))
	flips := make([][]float64, count)
	for f := range flips {
		signs := slices.Repeat([]float64{1}, rounds)
		for round := 1; round < rounds && f > 0; round++ {
			if random && r.IntN(2) == 1 || !random && f>>(round-1)&1 == 1 {
				signs[round] = -1
			}
		}
		flips[f] = signs
	}
	return flips
}

// Groups returns the largest sets of the things 0 to n-1 in which no two things are apart:
// a compact letter display by insertion and absorption (Piepho 2004). "Not apart" is not
// transitive, so sets overlap; every thing is in at least one set. Each set is in
// ascending order, and the sets are sorted by their members.
func Groups(n int, apart func(i, j int) bool) [][]int {
	groups := [][]int{indices(n)}
	for i := range n {
		for j := i + 1; j < n; j++ {
			if !apart(i, j) {
				continue
			}
			var next [][]int
			for _, group := range groups {
				if !slices.Contains(group, i) || !slices.Contains(group, j) {
					next = append(next, group)
					continue
				}
				next = append(next, without(group, i), without(group, j))
			}
			groups = dropContained(next)
		}
	}
	slices.SortFunc(groups, slices.Compare)
	return groups
}

func without(group []int, member int) []int {
	at := slices.Index(group, member)
	return slices.Concat(group[:at], group[at+1:])
}

// dropContained returns the groups that no other group contains.
func dropContained(groups [][]int) [][]int {
	var kept [][]int
	for k, group := range groups {
		within := func(other int) bool {
			if other == k || len(groups[other]) < len(group) {
				return false
			}
			for _, member := range group {
				if !slices.Contains(groups[other], member) {
					return false
				}
			}
			return len(groups[other]) > len(group) || other < k
		}
		if !slices.ContainsFunc(indices(len(groups)), within) {
			kept = append(kept, group)
		}
	}
	return kept
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
