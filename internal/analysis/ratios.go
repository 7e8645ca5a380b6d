package analysis

import (
	"math"

	"github.com/cnibench/cnibench/internal/stat"
)

// This file computes ratios to the baseline: within rounds or, if a run's rounds are not
// paired, of all rounds to all.

// Unpaired says whether rounds of the same number were not measured together.
func (e *Facts) Unpaired() bool { return e.Run.Plan.Unpaired }

// BaseOf returns the place of the baseline's figures for a place. If the plan left the
// baseline out of the step, because hosts without Services do not have its path, that is
// the step with the same load from pod to pod.
func (e *Evidence) BaseOf(at FigureKey) FigureKey {
	mayOmit := e.Unpaired() || !e.Run.Plan.Takes(e.Run.Baseline, at.Step)
	if mayOmit && len(e.Figures[at][e.Run.Baseline]) == 0 {
		if direct := e.Direct(at.Step); direct != "" && direct != at.Step {
			return FigureKey{at.ComparableSet, direct, at.Metric}
		}
	}
	return at
}

// Compare returns the ratio to the baseline with its interval and p value. If no single
// round has both figures, it is the ratio of the figures of all rounds together. It is nil
// if no ratio can be formed.
func (e *Evidence) Compare(at FigureKey, contender string) *Comparison {
	baseAt := e.BaseOf(at)
	if e.Lossy(baseAt, e.Run.Baseline) {
		return nil
	}
	values, base := e.Figures[at][contender], e.Figures[baseAt][e.Run.Baseline]
	pooled, basePooled := e.Percentiles[at][contender], e.Percentiles[baseAt][e.Run.Baseline]
	if pooled.seconds > 0 && basePooled.seconds > 0 {
		if e.Unpaired() {
			if len(values) == 0 || len(base) == 0 {
				return withStep(at, baseAt, &Comparison{Ratio: pooled.seconds / basePooled.seconds, Pairs: min(pooled.rounds, basePooled.rounds)})
			}
		} else if c := pooled.ratioTo(basePooled, e.Opt.Confidence, e.Autocorrelation[at.ComparableSet].Inflation()); c != nil {
			return withStep(at, baseAt, c)
		}
	}
	ratios, ok := e.Ratios(at, contender)
	if !ok {
		return nil
	}
	if e.Unpaired() {
		return e.shift(base.Values(), values.Values(), at, baseAt)
	}
	shift, p := stat.ComparePaired(ratios, e.Opt.Confidence, e.Autocorrelation[at.ComparableSet].Inflation())
	c := toComparison(shift)
	c.Pairs = len(ratios)
	if len(ratios) > 1 {
		c.P = &p
	}
	return withStep(at, baseAt, c)
}

// HalfWidth returns half the width of the interval as a share of the ratio; infinite
// without an interval.
func (c *Comparison) HalfWidth() float64 {
	if c.CI == nil {
		return math.Inf(1)
	}
	return stat.HalfWidth(c.CI[0], c.CI[1])
}

// withStep sets c.Step if the baseline's figures are those of another step.
func withStep(at, baseAt FigureKey, c *Comparison) *Comparison {
	if baseAt != at {
		c.Step = baseAt.Step
	}
	return c
}

// toComparison returns a shift as a Comparison, with an interval if there are enough values.
func toComparison(s stat.Shift) *Comparison {
	c := &Comparison{Ratio: s.Ratio}
	if s.Bounded() {
		c.CI = &Interval{s.Low, s.High}
	}
	return c
}

// shift compares all rounds of a contender with all of the baseline.
func (e *Evidence) shift(base, values []float64, at, baseAt FigureKey) *Comparison {
	c := toComparison(stat.RatioShift(base, values, e.Opt.Confidence))
	c.Pairs = min(len(base), len(values))
	if len(values) > 1 && len(base) > 1 {
		p := e.RankTests.P(base, values)
		c.P = &p
	}
	return withStep(at, baseAt, c)
}

// Ratios returns a contender's ratios to the baseline: within rounds, or of all rounds to
// all. ok is false if there are none or one of them can't be formed.
func (e *Evidence) Ratios(at FigureKey, contender string) (ratios []float64, ok bool) {
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

// BaseOfRound returns the baseline's value for that round; if rounds are not paired, the
// median of all its rounds.
func (e *Evidence) BaseOfRound(base Series, round int) (v float64, ok bool) {
	if e.Unpaired() {
		return stat.Median(base.Values()), len(base) > 0
	}
	v, ok = base[round]
	return v, ok
}

// ZeroRounds returns the rounds in which the baseline's value is not above 0, so that no
// ratio can be formed.
func (e *Evidence) ZeroRounds(at FigureKey, contender string) []int {
	var rounds []int
	base := e.Figures[e.BaseOf(at)][e.Run.Baseline]
	for _, round := range base.Rounds() {
		if _, measured := e.Figures[at][contender][round]; base[round] <= 0 && (measured || e.Unpaired()) {
			rounds = append(rounds, round)
		}
	}
	return rounds
}
