package analysis

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/cnibench/cnibench/internal/stat"
)

// drawing draws rounds anew, the same ones for all contenders of a group.
type drawing struct {
	gauges     []gauge
	candidates []string
	rounds     []int
	resamples  int
	confidence float64
	enough     bool          // rounds for an interval
	steady     []int         // criteria that are about all gauges
	merits     [][][]float64 // by gauge, candidate, round; NaN where there is none
	rng        *rand.Rand
}

func (c *chooser) drawing(g group, gauges []gauge, candidates []string) *drawing {
	d := &drawing{
		gauges: gauges, candidates: candidates, resamples: cmp.Or(c.wish.Resamples, defaultResamples),
		confidence: c.e.opt.Confidence, rng: rand.New(rand.NewPCG(c.e.run.Plan.Seed, uint64(len(g.Kernel)))),
	}
	for i, criterion := range Criteria() {
		if criterion.takes == nil {
			d.steady = append(d.steady, i)
		}
	}
	for _, x := range gauges {
		for _, candidate := range candidates {
			d.rounds = append(d.rounds, x.merits[candidate].rounds()...)
		}
	}
	slices.Sort(d.rounds)
	d.rounds = slices.Compact(d.rounds)
	for _, x := range gauges {
		var of [][]float64
		for _, candidate := range candidates {
			values := make([]float64, len(d.rounds))
			for i, round := range d.rounds {
				values[i] = math.NaN()
				if m, ok := x.merits[candidate][round]; ok {
					values[i] = m
				}
			}
			of = append(of, values)
		}
		d.merits = append(d.merits, of)
	}
	d.enough = len(d.rounds) >= stat.NeedsForInterval(d.confidence)
	return d
}

// terms fills in the merits of a candidate over the drawn rounds (by their
// positions), one per criterion: the mean over its gauges.
func (d *drawing) terms(out []float64, candidate int, criteria, drawn []int, scratch []float64) {
	for i, criterion := range criteria {
		steady := slices.Contains(d.steady, criterion)
		sum, n := 0.0, 0
		for k := range d.gauges {
			switch {
			case steady:
				sum, n = sum+steadiness(d.merits[k][candidate], drawn, scratch), n+1
			case d.gauges[k].criterion == criterion:
				sum, n = sum+drawnMiddle(d.merits[k][candidate], drawn, scratch), n+1
			}
		}
		out[i] = sum / float64(n)
	}
}

// rank orders the candidates, best first.
func (d *drawing) rank(criteria []int, weights []Weight) []Choice {
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
	choices, all := make([]Choice, len(d.candidates)), make([]int, len(d.rounds))
	for i := range all {
		all[i] = i
	}
	for i, candidate := range d.candidates {
		d.terms(terms, i, criteria, all, scratch)
		choices[i] = Choice{Contender: candidate, Score: math.Exp(score(terms))}
		for k, criterion := range criteria {
			choices[i].Terms = append(choices[i].Terms, Term{Criterion: weights[criterion].Criterion, Weight: weights[criterion].Weight, Ratio: math.Exp(terms[k])})
		}
	}
	d.resample(choices, criteria, score, scratch)
	slices.SortStableFunc(choices, func(a, b Choice) int { return cmp.Compare(b.Score, a.Score) })
	return choices
}

// resample fills in wins and intervals.
func (d *drawing) resample(choices []Choice, criteria []int, score func([]float64) float64, scratch []float64) {
	scores := make([][]float64, len(choices))
	terms := make([][][]float64, len(choices)) // by choice, by term
	for i := range choices {
		terms[i] = make([][]float64, len(criteria))
	}
	drawn, t := make([]int, len(d.rounds)), make([]float64, len(criteria))
	for range d.resamples {
		for i := range drawn {
			drawn[i] = d.rng.IntN(len(d.rounds))
		}
		best := 0
		for i := range d.candidates {
			d.terms(t, i, criteria, drawn, scratch)
			for k := range t {
				terms[i][k] = append(terms[i][k], t[k])
			}
			scores[i] = append(scores[i], score(t))
			if last := len(scores[i]) - 1; scores[i][last] > scores[best][last] {
				best = i
			}
		}
		choices[best].Wins += 1 / float64(d.resamples)
	}
	for i := range choices {
		choices[i].Wins = min(1, choices[i].Wins)
		choices[i].CI = d.interval(scores[i])
		for k := range choices[i].Terms {
			choices[i].Terms[k].CI = d.interval(terms[i][k])
		}
	}
}

// interval is the middle of the resampled logarithms, nil with too few rounds.
func (d *drawing) interval(logs []float64) *Interval {
	if !d.enough {
		return nil
	}
	slices.Sort(logs)
	out := int(float64(len(logs)) * (1 - d.confidence) / 2)
	return &Interval{math.Exp(logs[out]), math.Exp(logs[len(logs)-1-out])}
}
