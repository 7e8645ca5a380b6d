package recommend

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/stat"
)

// scores are the merits of candidates by round. A candidate's score is Hodges and
// Lehmann's middle of its rounds' scores; its interval, and whether one candidate is
// better than another, come from the exact rank test that belongs to it: of signed ranks
// where rounds are pairs, else Mann-Whitney.
type scores struct {
	criteria   []int
	weights    []float64 // of the criteria, their sum 1
	confidence float64
	inflation  float64   // of intervals, as noise may last from round to round: stat.Serial.Inflation
	own        []byRound // by candidate
	base       byRound   // of the baseline; nil where rounds are pairs
}

// byRound are the merits of one contender: the logarithm for each criterion, by round.
type byRound map[int][]float64

// scoresOf gathers the candidates' merits.
func scoresOf(gauges []gauge, candidates []string, criteria []int, weights []analysis.Weight, confidence, inflation float64) *scores {
	s := &scores{criteria: criteria, confidence: confidence, inflation: inflation}
	total := 0.0
	for _, i := range criteria {
		total += weights[i].Weight
	}
	for _, i := range criteria {
		s.weights = append(s.weights, weights[i].Weight/total)
	}
	for _, candidate := range candidates {
		s.own = append(s.own, s.rounds(gauges, func(x *gauge) analysis.Series { return x.merits[candidate] }))
	}
	if gauges[0].base != nil {
		s.base = s.rounds(gauges, func(x *gauge) analysis.Series { return x.base })
		for _, terms := range s.base {
			for k, criterion := range criteria {
				if Criteria()[criterion].takes == nil {
					terms[k] = 0 // its steadiness is no ratio to the baseline's
				}
			}
		}
	}
	return s
}

// rounds are the merits of one contender in every round that has half of its gauges or
// more: the mean over a criterion's gauges. A gauge without a value in the round counts with
// its middle, which neither gains nor loses anything.
func (s *scores) rounds(gauges []gauge, of func(x *gauge) analysis.Series) byRound {
	list, have := byRound{}, map[int]int{}
	middles := make([]float64, len(gauges))
	for g := range gauges {
		series := of(&gauges[g])
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
			sum, of2 := 0.0, 0.0
			for g := range gauges {
				value, measured := of(&gauges[g])[round]
				if !measured {
					value = middles[g]
				}
				switch {
				case Criteria()[criterion].takes == nil:
					sum, of2 = sum-math.Abs(value-middles[g]), of2+1
				case gauges[g].criterion == criterion:
					sum, of2 = sum+value, of2+1
				}
			}
			terms[k] = sum / of2
		}
		list[round] = terms
	}
	return list
}

// each is what of makes of the merits of every round, as ratios, by round.
func (b byRound) each(of func(terms []float64) float64) map[int]float64 {
	values := make(map[int]float64, len(b))
	for round, terms := range b {
		values[round] = math.Exp(of(terms))
	}
	return values
}

// score is the weighted geometric mean of one round, as a logarithm.
func (s *scores) score(terms []float64) float64 {
	sum := 0.0
	for k, w := range s.weights {
		sum += w * terms[k]
	}
	return sum
}

// term is one criterion of a round.
func term(k int) func(terms []float64) float64 {
	return func(terms []float64) float64 { return terms[k] }
}

// ratio is a candidate's ratio to the baseline, of the rounds' score or of a term.
func (s *scores) ratio(candidate int, of func(terms []float64) float64) (float64, *analysis.Interval) {
	own := inOrder(s.own[candidate].each(of))
	shift := stat.PairedShift(own, s.confidence).Widened(s.inflation)
	if s.base != nil {
		shift = stat.RatioShift(inOrder(s.base.each(of)), own, s.confidence)
	}
	if !shift.Bounded() {
		return shift.Ratio, nil
	}
	return shift.Ratio, &analysis.Interval{shift.Low, shift.High}
}

// against is by how much candidate a is better than b in score, with the chance of so
// large a difference between equals.
func (s *scores) against(a, b int) (stat.Shift, float64) {
	first, second := s.own[a].each(s.score), s.own[b].each(s.score)
	if s.base != nil {
		return stat.RatioShift(inOrder(second), inOrder(first), s.confidence), stat.MannWhitney(inOrder(first), inOrder(second))
	}
	ratios, _ := stat.Ratios(first, second)
	return stat.ComparePaired(ratios, s.confidence, s.inflation)
}

// enough says that there are rounds enough for intervals.
func (s *scores) enough() bool {
	needs := stat.NeedsForInterval(s.confidence)
	for _, own := range s.own {
		if len(own) < needs {
			return false
		}
	}
	return s.base == nil || len(s.base) >= needs
}

// mostRounds is the largest number of rounds of any candidate.
func (s *scores) mostRounds() int {
	most := 0
	for _, own := range s.own {
		most = max(most, len(own))
	}
	return most
}

func inOrder(values map[int]float64) []float64 { return analysis.Series(values).Values() }

// rank makes the choices, best first, and notes in c.at which candidate each is.
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

// wins draws the rounds anew, with replacement, and counts how often each candidate comes
// first; those within asGood of the best share a first place. Paired rounds are drawn for
// all candidates together.
func (s *scores) wins(rng *rand.Rand, resamples int) []float64 {
	values, rounds := make([][]float64, len(s.own)), 0
	common := analysis.SortedKeys(s.own[0])
	for _, own := range s.own {
		common = slices.DeleteFunc(common, func(round int) bool { return own[round] == nil })
	}
	for i, own := range s.own {
		if s.base != nil {
			values[i] = inOrder(own.each(s.score))
			continue
		}
		for _, round := range common {
			values[i] = append(values[i], math.Exp(s.score(own[round])))
		}
		rounds = len(common)
	}
	won, now := make([]float64, len(s.own)), make([]float64, len(s.own))
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
			now[i] = stat.Median(sample)
		}
		enough := slices.Max(now) * asGood
		first := analysis.Count(now, func(v float64) bool { return v >= enough })
		for i, v := range now {
			if v >= enough {
				won[i] += 1 / float64(resamples*first)
			}
		}
	}
	for i := range won {
		won[i] = min(1, won[i])
	}
	return won
}

// Sensible weightings: every weight between half and twice what it is, drawn evenly on a
// logarithmic scale, each by itself.
const (
	weightings  = 1000
	mostReweigh = 2.0
)

// otherWinner is the share of the sensible weightings under which another candidate than
// the first has the best score. It goes by the terms as measured: what the rounds leave open
// is the interval's.
func otherWinner(rng *rand.Rand, ranked []analysis.Choice) float64 {
	others := 0
	for range weightings {
		var weights []float64
		for _, t := range ranked[0].Terms {
			weights = append(weights, t.Weight*math.Pow(mostReweigh, 2*rng.Float64()-1))
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
