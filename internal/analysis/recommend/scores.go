package recommend

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// scores holds the merits of candidates by round. A candidate's score is Hodges and
// Lehmann's estimate over the scores of its rounds. Its interval, and the test of one
// candidate against another, are those of the matching exact rank test: signed ranks if
// rounds are paired, else Mann–Whitney.
type scores struct {
	criteria   []int
	weights    []float64 // of the criteria, their sum 1
	confidence float64
	inflation  float64   // of intervals, because noise may last from round to round: stat.Serial.Inflation
	merits     []byRound // by candidate
	base       byRound   // of the baseline; nil if rounds are paired
	fewest     measured  // the figure with the fewest rounds, of a candidate or the baseline
}

// measured is a figure of a contender, and the number of rounds that have it.
type measured struct {
	rounds int
	figure string // "macvlan's goodput at dts"
}

// byRound holds the merits of one contender: a logarithm for each criterion, by round.
type byRound map[int][]float64

// scoresOf gathers the candidates' merits.
func scoresOf(gauges []gauge, baseline string, candidates []string, criteria []int, weights []analysis.Weight, confidence, inflation float64) *scores {
	s := &scores{criteria: criteria, confidence: confidence, inflation: inflation, fewest: measured{rounds: math.MaxInt}}
	total := 0.0
	for _, i := range criteria {
		total += weights[i].Weight
	}
	for _, i := range criteria {
		s.weights = append(s.weights, weights[i].Weight/total)
	}
	for _, candidate := range candidates {
		s.merits = append(s.merits, s.rounds(gauges, func(x *gauge) analysis.Series { return x.merits[candidate] }))
	}
	for i := range gauges {
		x := &gauges[i]
		for _, candidate := range candidates {
			s.countRounds(x, candidate, x.merits[candidate])
		}
		if x.base != nil {
			s.countRounds(x, baseline, x.base)
		}
	}
	if gauges[0].base != nil {
		s.base = s.rounds(gauges, func(x *gauge) analysis.Series { return x.base })
		for _, terms := range s.base {
			for k, criterion := range criteria {
				if Criteria()[criterion].takes == nil {
					terms[k] = 0 // steadiness is no ratio to the baseline's steadiness
				}
			}
		}
	}
	return s
}

// countRounds sets s.fewest if no figure before had as few rounds.
func (s *scores) countRounds(x *gauge, contender string, series analysis.Series) {
	if len(series) < s.fewest.rounds {
		s.fewest = measured{len(series), fmt.Sprintf("%s's %s at %s", contender, x.Metric, x.Step)}
	}
}

// rounds returns the merits of one contender, by round: for each criterion the mean over
// its gauges. Rounds with values of less than half of the gauges are left out. A missing
// value is replaced by the median over rounds; for stability it is left out. seriesOf returns
// the contender's values of a gauge.
func (s *scores) rounds(gauges []gauge, seriesOf func(x *gauge) analysis.Series) byRound {
	list, have := byRound{}, map[int]int{}
	middles := make([]float64, len(gauges))
	for g := range gauges {
		series := seriesOf(&gauges[g])
		middles[g] = stat.Median(series.Values())
		for round := range series {
			have[round]++
		}
	}
	for round, n := range have {
		if 2*n < len(gauges) {
			continue
		}
		terms := make([]float64, len(s.criteria))
		for k, criterion := range s.criteria {
			sum, count := 0.0, 0.0
			for g := range gauges {
				value, has := seriesOf(&gauges[g])[round]
				if !has {
					value = middles[g]
				}
				switch {
				case Criteria()[criterion].takes == nil:
					if has {
						sum, count = sum-math.Abs(value-middles[g]), count+1
					}
				case gauges[g].criterion == criterion:
					sum, count = sum+value, count+1
				}
			}
			terms[k] = sum / count
		}
		list[round] = terms
	}
	return list
}

// ratios computes a logarithm from the merits of each round, and returns it as a ratio, by
// round.
func (b byRound) ratios(logOf func(terms []float64) float64) map[int]float64 {
	values := make(map[int]float64, len(b))
	for round, terms := range b {
		values[round] = math.Exp(logOf(terms))
	}
	return values
}

// score returns the weighted geometric mean of one round, as a logarithm.
func (s *scores) score(terms []float64) float64 {
	sum := 0.0
	for k, w := range s.weights {
		sum += w * terms[k]
	}
	return sum
}

// term returns a function that returns the k-th criterion of a round.
func term(k int) func(terms []float64) float64 {
	return func(terms []float64) float64 { return terms[k] }
}

// ratio returns a candidate's ratio to the baseline, for the score or for a term (logOf),
// and its interval.
func (s *scores) ratio(candidate int, logOf func(terms []float64) float64) (float64, *analysis.Interval) {
	own := inOrder(s.merits[candidate].ratios(logOf))
	shift := stat.PairedShift(own, s.confidence).Widen(s.inflation)
	if s.base != nil {
		shift = stat.RatioShift(inOrder(s.base.ratios(logOf)), own, s.confidence)
	}
	if !shift.Bounded() {
		return shift.Ratio, nil
	}
	return shift.Ratio, &analysis.Interval{shift.Low, shift.High}
}

// against returns by how much candidate a's score is better than b's, and the p of the
// hypothesis that they are equal.
func (s *scores) against(a, b int) (shift stat.Shift, p float64) {
	first, second := s.merits[a].ratios(s.score), s.merits[b].ratios(s.score)
	if s.base != nil {
		return stat.RatioShift(inOrder(second), inOrder(first), s.confidence), stat.MannWhitney(inOrder(first), inOrder(second))
	}
	ratios, _ := stat.Ratios(first, second)
	return stat.ComparePaired(ratios, s.confidence, s.inflation)
}

// enough says whether there are enough rounds for intervals, and values of every figure in
// as many.
func (s *scores) enough() bool {
	needs := stat.NeedsForInterval(s.confidence)
	return s.fewest.rounds >= needs && !slices.ContainsFunc(s.merits, func(b byRound) bool { return len(b) < needs }) &&
		(s.base == nil || len(s.base) >= needs)
}

// tooFew names the rounds that are too few for intervals: all, or those of one figure.
func (s *scores) tooFew() string {
	maximum := 0
	for _, rounds := range s.merits {
		maximum = max(maximum, len(rounds))
	}
	if needs := stat.NeedsForInterval(s.confidence); maximum >= needs && s.fewest.rounds < needs {
		return unit.Plural(s.fewest.rounds, "round") + " of " + s.fewest.figure
	}
	return unit.Plural(maximum, "round")
}

func inOrder(values map[int]float64) []float64 { return analysis.Series(values).Values() }

// rank returns the choices, best first. order[i] is the candidate of choice i.
func (s *scores) rank(candidates []string, weights []analysis.Weight) (choices []analysis.Choice, order []int) {
	order = make([]int, len(candidates))
	all := make([]analysis.Choice, len(candidates))
	for i, candidate := range candidates {
		order[i] = i
		all[i].Contender = candidate
		all[i].Score, all[i].CI = s.ratio(i, s.score)
		for k, criterion := range s.criteria {
			t := analysis.Term{Criterion: weights[criterion].Criterion, Weight: weights[criterion].Weight}
			t.Ratio, t.CI = s.ratio(i, term(k))
			all[i].Terms = append(all[i].Terms, t)
		}
		if !s.enough() {
			all[i].CI = nil
			for k := range all[i].Terms {
				all[i].Terms[k].CI = nil
			}
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all[b].Score, all[a].Score) })
	for _, i := range order {
		choices = append(choices, all[i])
	}
	return choices, order
}

// wins resamples the rounds, with replacement, and returns the share of the resamples in
// which each candidate comes first. Candidates within asGood of the best share the first
// place. Paired rounds are drawn for all candidates together.
func (s *scores) wins(rng *rand.Rand, resamples int) []float64 {
	values, rounds := make([][]float64, len(s.merits)), 0
	common := analysis.SortedKeys(s.merits[0])
	for _, merits := range s.merits {
		common = slices.DeleteFunc(common, func(round int) bool { return merits[round] == nil })
	}
	for i, merits := range s.merits {
		if s.base != nil {
			values[i] = inOrder(merits.ratios(s.score))
			continue
		}
		for _, round := range common {
			values[i] = append(values[i], math.Exp(s.score(merits[round])))
		}
		rounds = len(common)
	}
	won, medians := make([]float64, len(s.merits)), make([]float64, len(s.merits))
	drawn := make([]int, rounds)
	for range resamples {
		for i := range drawn {
			drawn[i] = rng.IntN(rounds)
		}
		for i := range values {
			sample := make([]float64, 0, len(values[i]))
			for k := range values[i] {
				if s.base != nil {
					k = rng.IntN(len(values[i]))
				} else {
					k = drawn[k]
				}
				sample = append(sample, values[i][k])
			}
			medians[i] = stat.Median(sample)
		}
		minimum := slices.Max(medians) * asGood
		first := analysis.Count(medians, func(v float64) bool { return v >= minimum })
		for i, v := range medians {
			if v >= minimum {
				won[i] += 1 / float64(resamples*first)
			}
		}
	}
	for i := range won {
		won[i] = min(1, won[i])
	}
	return won
}

// otherWinner tries so many weightings. Each weight is multiplied by a random factor
// between 1/maxReweigh and maxReweigh, even on a logarithmic scale.
const (
	weightings = 1000
	maxReweigh = 2.0
)

// otherWinner returns the share of the weightings with which another candidate than the
// first has the best score. It ignores the uncertainty of the terms, which intervals show.
func otherWinner(rng *rand.Rand, ranked []analysis.Choice) float64 {
	others := 0
	for range weightings {
		var weights []float64
		for _, t := range ranked[0].Terms {
			weights = append(weights, t.Weight*math.Pow(maxReweigh, 2*rng.Float64()-1))
		}
		score := func(c *analysis.Choice) float64 {
			sum, total := 0.0, 0.0
			for k, t := range c.Terms {
				sum, total = sum+weights[k]*math.Log(t.Ratio), total+weights[k]
			}
			return sum / total
		}
		first := score(&ranked[0])
		if slices.ContainsFunc(ranked[1:], func(c analysis.Choice) bool { return score(&c) > first+1e-12 }) {
			others++
		}
	}
	return float64(others) / weightings
}
