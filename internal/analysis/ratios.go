package analysis

import (
	"github.com/cnibench/cnibench/internal/stat"
)

// This file gives figures as ratios to the baseline's: within rounds, or, of
// a run whose rounds are no pairs, of all rounds to all.

// unpaired says that rounds of the same number share nothing but that.
func (e *evidence) unpaired() bool { return e.run.Plan.Unpaired }

// baseOf is where the baseline's figures for a place are. Where the baseline
// was not to be measured on a path, which hosts without Services can't be, it
// is the same load from pod to pod.
func (e *evidence) baseOf(at place) place {
	if e.leftOut(at.Step) && len(e.figures[at][e.run.Baseline]) == 0 {
		if direct := e.direct(at.Step); direct != "" && direct != at.Step {
			return place{at.group, direct, at.Metric}
		}
	}
	return at
}

// leftOut says that the plan may leave the baseline out of the step.
func (e *evidence) leftOut(step string) bool {
	return e.unpaired() || !e.run.Plan.Takes(e.run.Baseline, step)
}

// compare is the ratio to the baseline with its interval and p, or the ratio
// of the figures of all rounds together where no single round has both; nil
// where a ratio can't be formed.
func (e *evidence) compare(at place, contender string) *Comparison {
	beside := e.baseOf(at)
	if e.lossy(beside, e.run.Baseline) {
		return nil
	}
	values, base := e.figures[at][contender], e.figures[beside][e.run.Baseline]
	ratios, ok := e.ratios(at, contender)
	if !ok {
		pooled, both := e.percentiles[at][contender], e.percentiles[beside][e.run.Baseline]
		if pooled.seconds > 0 && both.seconds > 0 && (len(values) == 0 || len(base) == 0) {
			return besideAt(at, beside, &Comparison{Ratio: pooled.seconds / both.seconds})
		}
		return nil
	}
	if e.unpaired() {
		return e.shift(base.values(), values.values(), at, beside)
	}
	c := &Comparison{Ratio: stat.Median(ratios), CI: interval(ratios, e.opt.Confidence)}
	if len(ratios) > 1 {
		p := stat.SignedRank(ratios)
		c.P = &p
	}
	return besideAt(at, beside, c)
}

// besideAt notes the step that stands in for that of the place.
func besideAt(at, beside place, c *Comparison) *Comparison {
	if beside != at {
		c.Step = beside.Step
	}
	return c
}

// shift compares two samples of rounds that are no pairs.
func (e *evidence) shift(base, values []float64, at, beside place) *Comparison {
	s := stat.RatioShift(base, values, e.opt.Confidence)
	c := &Comparison{Ratio: s.Ratio}
	if s.Bounded() {
		c.CI = &Interval{s.Low, s.High}
	}
	if len(values) > 1 && len(base) > 1 {
		p := e.ranks.P(base, values)
		c.P = &p
	}
	return besideAt(at, beside, c)
}

// ratios are a contender's to the baseline, within rounds, or of all rounds to
// all. ok is false where there is none or one can't be formed.
func (e *evidence) ratios(at place, contender string) (ratios []float64, ok bool) {
	values, base := e.figures[at][contender], e.figures[e.baseOf(at)][e.run.Baseline]
	if !e.unpaired() {
		return stat.Ratios(values, base)
	}
	for _, b := range base.values() {
		for _, v := range values.values() {
			if b <= 0 || v < 0 {
				return nil, false
			}
			ratios = append(ratios, v/b)
		}
	}
	return ratios, len(ratios) > 0
}

// baseOfRound is the baseline's value beside one of that round: the middle of
// its rounds where they are no pairs.
func (e *evidence) baseOfRound(base series, round int) (v float64, ok bool) {
	if e.unpaired() {
		return stat.Median(base.values()), len(base) > 0
	}
	v, ok = base[round]
	return v, ok
}

// zeroRounds are the rounds in which the baseline's value lets no ratio to it
// be formed.
func (e *evidence) zeroRounds(at place, contender string) []int {
	var rounds []int
	from := e.figures[e.baseOf(at)][e.run.Baseline]
	for _, round := range from.rounds() {
		if _, beside := e.figures[at][contender][round]; from[round] <= 0 && (beside || e.unpaired()) {
			rounds = append(rounds, round)
		}
	}
	return rounds
}
