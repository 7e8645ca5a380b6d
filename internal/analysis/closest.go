package analysis

import (
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// Closest is, among the contenders that can't be told apart from a given one, the one with
// the nearest figure, and how many rounds it takes to tell the two apart. MDD and
// RoundsFor5 are estimates: docs/methods.md.
type Closest struct {
	Contender string `json:"contender"`
	// MDD is the smallest relative difference between the two that these rounds would show
	// in four of five runs, 0.05 for 5 %; nil if the rounds are too few to show any.
	MDD *float64 `json:"mdd,omitempty"`
	// RoundsFor5 is how many rounds would show a difference of 5 %; 0 is unknown.
	RoundsFor5 int `json:"rounds_for_5_percent,omitempty"`
}

// closest returns the Closest of every contender of a place. There is none if the metric
// is no headline, or if rounds are not paired.
func (e *Evidence) closest(at FigureKey, ranked map[string]Series, ranks map[string]Rank) map[string]*Closest {
	all := map[string]*Closest{}
	if !at.Row().Has(result.Headline) || e.Unpaired() {
		return all
	}
	names := e.OrderContenders(ranked)
	for _, a := range names {
		nearest, minimum := "", math.Inf(1)
		for _, b := range names {
			if a == b || !haveCommon(ranks[a].Letters, ranks[b].Letters) {
				continue
			}
			if distance := math.Abs(math.Log(e.Headline(at, a) / e.Headline(at, b))); distance < minimum {
				nearest, minimum = b, distance
			}
		}
		if nearest == "" {
			continue
		}
		all[a] = &Closest{Contender: nearest}
		if ratios, ok := stat.Ratios(ranked[a], ranked[nearest]); ok {
			all[a].MDD, all[a].RoundsFor5 = detectable(stat.LogDeviation(ratios)*e.Autocorrelation[at.ComparableSet].DetectableBy(), len(ratios), func(n int) float64 {
				return stat.DetectableApart(n, len(names))
			})
		}
	}
	return all
}

func haveCommon(a, b []string) bool {
	return slices.ContainsFunc(a, func(letter string) bool { return slices.Contains(b, letter) })
}
