package analysis

import (
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// Closest is the contender whose figure is nearest among those that can't be told apart
// from another, and what it takes to tell the two apart. Both figures are estimates:
// docs/statistics.md.
type Closest struct {
	Contender string `json:"contender"`
	// MDD is the smallest relative difference between the two that these rounds would show
	// in four of five runs, 0.05 for 5 %; nil where they show none.
	MDD *float64 `json:"mdd,omitempty"`
	// RoundsFor5 is how many rounds would show one of 5 %; 0 where that can't be told.
	RoundsFor5 int `json:"rounds_for_5_percent,omitempty"`
}

// closest finds it for every contender of a place that stands for its step. Where rounds
// are no pairs there is none.
func (e *Evidence) closest(at Place, ranked map[string]Series, ranks map[string]Rank) map[string]*Closest {
	all := map[string]*Closest{}
	if !at.Row().Has(result.Headline) || e.Unpaired() {
		return all
	}
	names := e.Ordered(ranked)
	for _, a := range names {
		nearest, least := "", math.Inf(1)
		for _, b := range names {
			if a == b || !share(ranks[a].Groups, ranks[b].Groups) {
				continue
			}
			if far := math.Abs(math.Log(e.Headline(at, a) / e.Headline(at, b))); far < least {
				nearest, least = b, far
			}
		}
		if nearest == "" {
			continue
		}
		all[a] = &Closest{Contender: nearest}
		if ratios, ok := stat.Ratios(ranked[a], ranked[nearest]); ok {
			all[a].MDD, all[a].RoundsFor5 = detectable(stat.LogDeviation(ratios), len(ratios), func(n int) float64 {
				return stat.DetectableApart(n, len(names))
			})
		}
	}
	return all
}

func share(a, b []string) bool {
	return slices.ContainsFunc(a, func(letter string) bool { return slices.Contains(b, letter) })
}
