package analysis

import (
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// This file asks whether contenders' own noise lasts from round to round. The answer widens
// the intervals of ratios and raises the differences that letters take.

// lasting returns, by group, what stat.Serially finds of all usual figures of a group
// together. It is empty if rounds are in no order.
func (e *Evidence) lasting() map[Group]stat.Serial {
	found := map[Group]stat.Serial{}
	if e.Unpaired() {
		return found
	}
	for _, g := range e.Groups {
		places := slices.DeleteFunc(slices.Clone(e.Places), func(at Place) bool { return at.Group != g || !e.Usual(at) })
		rounds := wholeRounds(e, places)
		var tables [][][]float64
		for _, at := range places {
			tables = append(tables, inRounds(e, at, rounds))
		}
		found[g] = stat.Serially(tables)
	}
	return found
}

// Usual says that the place is what its step usually moves, or how long that usually takes.
func (e *Evidence) Usual(at Place) bool {
	row := at.Row()
	if row.Aspect != result.Traffic && row.Aspect != result.Typical {
		return false
	}
	for _, name := range result.Telling(row.Aspect) {
		if len(e.Figures[at.With(name)]) > 0 {
			return name == at.Metric
		}
	}
	return false
}

// wholeRounds returns the rounds in which most contenders of each place have a value: not
// the last one of a run that was interrupted.
func wholeRounds(e *Evidence, places []Place) []int {
	var rounds []int
	for round := 1; round <= e.Rounds(); round++ {
		whole := true
		for _, at := range places {
			n := 0
			for _, s := range e.Figures[at] {
				if _, measured := s[round]; measured {
					n++
				}
			}
			whole = whole && 2*n > len(e.Figures[at])
		}
		if whole {
			rounds = append(rounds, round)
		}
	}
	return rounds
}

// inRounds returns the values of a place by contender and round, NaN for none.
func inRounds(e *Evidence, at Place, rounds []int) [][]float64 {
	var table [][]float64
	for _, c := range e.Ordered(e.Figures[at]) {
		row := make([]float64, len(rounds))
		for i, round := range rounds {
			v, measured := e.Figures[at][c][round]
			if !measured {
				v = math.NaN()
			}
			row[i] = v
		}
		table = append(table, row)
	}
	return table
}
