package analysis

import (
	"math"

	"github.com/cnibench/cnibench/internal/stat"
)

// This file gives figures as ratios to the baseline's: within rounds, or, of
// a run whose rounds are no pairs, of all rounds to all.

// Unpaired says that rounds of the same number share nothing but that.
func (e *Facts) Unpaired() bool { return e.Run.Plan.Unpaired }

// BaseOf is where the baseline's figures for a place are. Where the baseline
// was not to be measured on a path, which hosts without Services can't be, it
// is the same load from pod to pod.
func (e *Evidence) BaseOf(at Place) Place {
	if e.leftOut(at.Step) && len(e.Figures[at][e.Run.Baseline]) == 0 {
		if direct := e.Direct(at.Step); direct != "" && direct != at.Step {
			return Place{at.Group, direct, at.Metric}
		}
	}
	return at
}

// leftOut says that the plan may leave the baseline out of the step.
func (e *Facts) leftOut(step string) bool {
	return e.Unpaired() || !e.Run.Plan.Takes(e.Run.Baseline, step)
}

// Compare is the ratio to the baseline with its interval and p, or the ratio
// of the figures of all rounds together where no single round has both; nil
// where a ratio can't be formed.
func (e *Evidence) Compare(at Place, contender string) *Comparison {
	beside := e.BaseOf(at)
	if e.Lossy(beside, e.Run.Baseline) {
		return nil
	}
	values, base := e.Figures[at][contender], e.Figures[beside][e.Run.Baseline]
	pooled, both := e.Percentiles[at][contender], e.Percentiles[beside][e.Run.Baseline]
	if pooled.seconds > 0 && both.seconds > 0 {
		if e.Unpaired() {
			if len(values) == 0 || len(base) == 0 {
				return besideAt(at, beside, &Comparison{Ratio: pooled.seconds / both.seconds, Pairs: min(pooled.rounds, both.rounds)})
			}
		} else if c := pooled.over(both, e.Opt.Confidence); c != nil {
			return besideAt(at, beside, c)
		}
	}
	ratios, ok := e.Ratios(at, contender)
	if !ok {
		return nil
	}
	if e.Unpaired() {
		return e.shift(base.Values(), values.Values(), at, beside)
	}
	c := bounded(stat.PairedShift(ratios, e.Opt.Confidence))
	c.Pairs = len(ratios)
	if len(ratios) > 1 {
		p := stat.SignedRank(ratios)
		c.P = &p
	}
	return besideAt(at, beside, c)
}

// HalfWidth is how far the interval reaches from its middle, as a share of the ratio;
// infinite without an interval.
func (c *Comparison) HalfWidth() float64 {
	if c.CI == nil {
		return math.Inf(1)
	}
	return stat.HalfWidth(c.CI[0], c.CI[1])
}

// besideAt notes the step that stands in for that of the place.
func besideAt(at, beside Place, c *Comparison) *Comparison {
	if beside != at {
		c.Step = beside.Step
	}
	return c
}

// bounded is a shift as a comparison, with an interval if there are values enough.
func bounded(s stat.Shift) *Comparison {
	c := &Comparison{Ratio: s.Ratio}
	if s.Bounded() {
		c.CI = &Interval{s.Low, s.High}
	}
	return c
}

// shift compares two samples of rounds that are no pairs.
func (e *Evidence) shift(base, values []float64, at, beside Place) *Comparison {
	c := bounded(stat.RatioShift(base, values, e.Opt.Confidence))
	c.Pairs = min(len(base), len(values))
	if len(values) > 1 && len(base) > 1 {
		p := e.RankTests.P(base, values)
		c.P = &p
	}
	return besideAt(at, beside, c)
}

// Ratios are a contender's to the baseline, within rounds, or of all rounds to
// all. ok is false where there is none or one can't be formed.
func (e *Evidence) Ratios(at Place, contender string) (ratios []float64, ok bool) {
	values, base := e.Figures[at][contender], e.Figures[e.BaseOf(at)][e.Run.Baseline]
	if !e.Unpaired() {
		return stat.Ratios(values, base)
	}
	for _, b := range base.Values() {
		for _, v := range values.Values() {
			if b <= 0 || v < 0 {
				return nil, false
			}
			ratios = append(ratios, v/b)
		}
	}
	return ratios, len(ratios) > 0
}

// BaseOfRound is the baseline's value beside one of that round: the middle of
// its rounds where they are no pairs.
func (e *Evidence) BaseOfRound(base Series, round int) (v float64, ok bool) {
	if e.Unpaired() {
		return stat.Median(base.Values()), len(base) > 0
	}
	v, ok = base[round]
	return v, ok
}

// ZeroRounds are the rounds in which the baseline's value lets no ratio to it
// be formed.
func (e *Evidence) ZeroRounds(at Place, contender string) []int {
	var rounds []int
	from := e.Figures[e.BaseOf(at)][e.Run.Baseline]
	for _, round := range from.Rounds() {
		if _, beside := e.Figures[at][contender][round]; from[round] <= 0 && (beside || e.Unpaired()) {
			rounds = append(rounds, round)
		}
	}
	return rounds
}
