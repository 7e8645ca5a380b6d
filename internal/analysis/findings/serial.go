package findings

import (
	"fmt"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/stat"
)

// autocorrelatedRounds asks whether contenders' own noise lasts from round to round, of all
// usual figures of a group together: groups and ratios take it for new in every round.
func autocorrelatedRounds(e *evidence) []analysis.Finding {
	if e.Unpaired() {
		return nil // rounds are in no order
	}
	var list []analysis.Finding
	for _, g := range e.Groups {
		places := slices.DeleteFunc(slices.Clone(e.Places), func(at analysis.Place) bool { return at.Group != g || !usual(e, at) })
		rounds := wholeRounds(e, places)
		var tables [][][]float64
		for _, at := range places {
			tables = append(tables, inRounds(e, at, rounds))
		}
		s := stat.Serially(tables)
		if !(s.P <= e.Opt.Alpha/float64(len(e.Groups))) {
			continue
		}
		list = append(list, analysis.Finding{Text: fmt.Sprintf(
			"%sa contender that did well in a round tended to do well in the next (correlation %.2f, p = %.2g): letters and intervals, which take rounds for independent, claim too much",
			e.GroupPrefix(g), s.Correlation, s.P)})
	}
	return list
}

// wholeRounds are those in which most contenders of each place have a value: not the last
// one of a run that was interrupted.
func wholeRounds(e *evidence, places []analysis.Place) []int {
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

// inRounds are the values of a place by contender and round, NaN for none.
func inRounds(e *evidence, at analysis.Place, rounds []int) [][]float64 {
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
