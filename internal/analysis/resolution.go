package analysis

import (
	"math"

	"github.com/cnibench/cnibench/internal/stat"
)

// wantedChange is the relative difference for which reports say how many rounds show it.
const wantedChange = 0.05

// resolution returns the smallest relative difference that the rounds of a figure would
// show, and how many rounds would show 5 %; see noise.
func (e *Evidence) resolution(at Place, contender string) (mdd *float64, rounds int) {
	sd, n, needs := e.noise(at, contender)
	return detectable(sd, n, needs)
}

// detectable returns the smallest relative difference that n rounds with noise of that
// standard deviation would show (nil: none), and how many rounds would show 5 %.
func detectable(sd float64, n int, needs func(n int) float64) (mdd *float64, rounds int) {
	if math.IsNaN(sd) {
		return nil, 0
	}
	rounds = stat.RoundsFor(math.Log1p(wantedChange)/sd, needs)
	least := needs(n)
	if math.IsInf(least, 1) {
		return nil, rounds
	}
	change := math.Expm1(least * sd)
	if math.IsInf(change, 1) {
		return nil, rounds
	}
	return &change, rounds
}

// noise returns the standard deviation of the logarithms that a contender is tested by,
// their number, and needs, which gives the least difference in standard deviations that n
// values show. The noise of a contender is that of its ratios to the baseline or, if rounds
// are not paired, that of both; the baseline's is its own. It is NaN if unknown.
func (e *Evidence) noise(at Place, contender string) (sd float64, n int, needs func(n int) float64) {
	values := e.Figures[at][contender].Values()
	if contender == e.Run.Baseline {
		return stat.LogDeviation(values), len(values), stat.DetectableRanks
	}
	ratios, ok := e.Ratios(at, contender)
	switch {
	case !ok:
		return math.NaN(), 0, nil
	case e.Unpaired():
		base := e.Figures[e.BaseOf(at)][e.Run.Baseline].Values()
		both := math.Hypot(stat.LogDeviation(values), stat.LogDeviation(base)) / math.Sqrt2
		return both, min(len(values), len(base)), stat.DetectableRanks
	}
	return stat.LogDeviation(ratios) * e.Lasting[at.Group].DetectableBy(), len(ratios), stat.DetectablePaired
}
