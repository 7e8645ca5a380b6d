package recommend

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/stat"
)

// drawing draws rounds anew: the same ones for all contenders of a group, or,
// where rounds are no pairs, for each contender and for the baseline others.
type drawing struct {
	gauges     []gauge
	candidates []string
	rounds     []int
	resamples  int
	confidence float64
	enough     bool          // rounds for an interval
	steady     []int         // criteria that are about all gauges
	merits     [][][]float64 // by gauge, candidate, round; NaN where there is none
	baseRounds []int
	base       [][]float64 // by gauge and round of the baseline; nil where rounds are pairs
	rng        *rand.Rand
}

func (c *chooser) drawing(g analysis.Group, gauges []gauge, candidates []string) *drawing {
	d := &drawing{
		gauges: gauges, candidates: candidates, resamples: cmp.Or(c.wish.Resamples, defaultResamples),
		confidence: c.e.Opt.Confidence, rng: rand.New(rand.NewPCG(c.e.Run.Plan.Seed, uint64(len(g.Kernel)))),
	}
	for i, criterion := range Criteria() {
		if criterion.takes == nil {
			d.steady = append(d.steady, i)
		}
	}
	for _, x := range gauges {
		for _, candidate := range candidates {
			d.rounds = append(d.rounds, x.merits[candidate].Rounds()...)
		}
	}
	slices.Sort(d.rounds)
	d.rounds = slices.Compact(d.rounds)
	for _, x := range gauges {
		d.baseRounds = append(d.baseRounds, x.base.Rounds()...)
	}
	slices.Sort(d.baseRounds)
	d.baseRounds = slices.Compact(d.baseRounds)
	for _, x := range gauges {
		var of [][]float64
		for _, candidate := range candidates {
			of = append(of, byRound(x.merits[candidate], d.rounds))
		}
		d.merits = append(d.merits, of)
		if x.base != nil {
			d.base = append(d.base, byRound(x.base, d.baseRounds))
		}
	}
	d.enough = len(d.rounds) >= stat.NeedsForInterval(d.confidence) &&
		(d.base == nil || len(d.baseRounds) >= stat.NeedsForInterval(d.confidence))
	return d
}

// byRound are the values of the rounds, NaN where there is none.
func byRound(s analysis.Series, rounds []int) []float64 {
	values := make([]float64, len(rounds))
	for i, round := range rounds {
		values[i] = math.NaN()
		if v, ok := s[round]; ok {
			values[i] = v
		}
	}
	return values
}

// draw fills in positions of rounds, with replacement.
func (d *drawing) draw(positions []int) {
	for i := range positions {
		positions[i] = d.rng.IntN(len(positions))
	}
}

// terms fills in the merits of a candidate over the drawn rounds (by their
// positions), one per criterion: the mean over its gauges.
func (d *drawing) terms(out []float64, candidate int, criteria, drawn, drawnBase []int, scratch []float64) {
	for i, criterion := range criteria {
		steady := slices.Contains(d.steady, criterion)
		sum, n := 0.0, 0
		for k := range d.gauges {
			switch {
			case steady:
				sum, n = sum+steadiness(d.merits[k][candidate], drawn, scratch), n+1
			case d.gauges[k].criterion == criterion && d.base != nil:
				sum, n = sum+drawnShift(d.merits[k][candidate], drawn, d.base[k], drawnBase), n+1
			case d.gauges[k].criterion == criterion:
				sum, n = sum+drawnMiddle(d.merits[k][candidate], drawn, scratch), n+1
			}
		}
		out[i] = sum / float64(n)
	}
}

// rank orders the candidates, best first.
func (d *drawing) rank(criteria []int, weights []analysis.Weight) []analysis.Choice {
	total := 0.0
	for _, i := range criteria {
		total += weights[i].Weight
	}
	score := func(terms []float64) float64 {
		sum := 0.0
		for k, i := range criteria {
			sum += weights[i].Weight * terms[k]
		}
		return sum / total
	}
	scratch, terms := make([]float64, len(d.rounds)), make([]float64, len(criteria))
	choices, all, allBase := make([]analysis.Choice, len(d.candidates)), positions(len(d.rounds)), positions(len(d.baseRounds))
	for i, candidate := range d.candidates {
		d.terms(terms, i, criteria, all, allBase, scratch)
		choices[i] = analysis.Choice{Contender: candidate, Score: math.Exp(score(terms))}
		for k, criterion := range criteria {
			choices[i].Terms = append(choices[i].Terms, analysis.Term{Criterion: weights[criterion].Criterion, Weight: weights[criterion].Weight, Ratio: math.Exp(terms[k])})
		}
	}
	d.resample(choices, criteria, score, scratch)
	slices.SortStableFunc(choices, func(a, b analysis.Choice) int { return cmp.Compare(b.Score, a.Score) })
	return choices
}

// positions are 0 to n-1.
func positions(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// resample fills in wins and intervals.
func (d *drawing) resample(choices []analysis.Choice, criteria []int, score func([]float64) float64, scratch []float64) {
	scores := make([][]float64, len(choices))
	terms := make([][][]float64, len(choices)) // by choice, by term
	for i := range choices {
		terms[i] = make([][]float64, len(criteria))
	}
	drawn, drawnBase, t := make([]int, len(d.rounds)), make([]int, len(d.baseRounds)), make([]float64, len(criteria))
	wins, now := make([]float64, len(choices)), make([]float64, len(choices))
	for range d.resamples {
		d.draw(drawn)
		d.draw(drawnBase)
		for i := range d.candidates {
			if d.base != nil && i > 0 {
				d.draw(drawn)
			}
			d.terms(t, i, criteria, drawn, drawnBase, scratch)
			for k := range t {
				terms[i][k] = append(terms[i][k], t[k])
			}
			now[i] = score(t)
			scores[i] = append(scores[i], now[i])
		}
		enough := slices.Max(now) + math.Log(asGood)
		first := analysis.Count(now, func(s float64) bool { return s >= enough })
		for i, s := range now {
			if s >= enough {
				choices[i].Among += 1 / float64(d.resamples)
				wins[i] += 1 / float64(d.resamples*first)
			}
		}
	}
	for i := range choices {
		won := min(1, wins[i])
		choices[i].Wins = &won
		choices[i].CI = d.interval(scores[i])
		for k := range choices[i].Terms {
			choices[i].Terms[k].CI = d.interval(terms[i][k])
		}
	}
}

// interval is the middle of the resampled logarithms, nil with too few rounds.
func (d *drawing) interval(logs []float64) *analysis.Interval {
	if !d.enough {
		return nil
	}
	slices.Sort(logs)
	out := int(float64(len(logs)) * (1 - d.confidence) / 2)
	return &analysis.Interval{math.Exp(logs[out]), math.Exp(logs[len(logs)-1-out])}
}
