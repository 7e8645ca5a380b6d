package analysis

import (
	"math"

	"github.com/cnibench/cnibench/internal/stat"
)

// wantedChange is the relative difference that reports name the rounds for.
const wantedChange = 0.05

// resolution is the smallest relative difference that the rounds of a figure
// would show, and how many rounds would show 5 %. A contender's noise is that
// of its ratios to the baseline, as its p is; the baseline's is its own, as if
// two runs were compared.
func (e *evidence) resolution(at place, contender string) (mdd *float64, rounds int) {
	values := e.figures[at][contender]
	noise, needs := values.values(), stat.DetectableRanks
	if contender != e.run.Baseline {
		ratios, ok := stat.Ratios(values, e.figures[at][e.run.Baseline])
		if !ok {
			return nil, 0
		}
		noise, needs = ratios, stat.DetectablePaired
	}
	sd := stat.LogDeviation(noise)
	if math.IsNaN(sd) {
		return nil, 0
	}
	rounds = stat.RoundsFor(math.Log1p(wantedChange)/sd, needs)
	least := needs(len(noise))
	if math.IsInf(least, 1) {
		return nil, rounds
	}
	change := math.Expm1(least * sd)
	if math.IsInf(change, 1) {
		return nil, rounds
	}
	return &change, rounds
}
