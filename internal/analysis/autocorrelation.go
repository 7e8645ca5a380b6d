package analysis

import (
	"maps"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// This file tests whether contenders' own noise lasts from round to round. If it does,
// intervals of ratios become wider, and only larger differences give different letters.

// autocorrelation returns, by group, the result of stat.Serially for all usual figures of the group
// together. The map is empty if rounds are unpaired.
func (e *Evidence) autocorrelation() map[ComparableSet]stat.Serial {
	found := map[ComparableSet]stat.Serial{}
	if e.Unpaired() {
		return found
	}
	for _, g := range e.Sets {
		places := slices.DeleteFunc(slices.Clone(e.Keys), func(at FigureKey) bool { return at.ComparableSet != g || !e.IsMainMetric(at) })
		places, rounds := wholeTogether(e, places)
		var tables [][][]float64
		for _, at := range places {
			tables = append(tables, table(e.Figures[at], e.OrderContenders(e.Figures[at]), rounds))
		}
		found[g] = stat.Serially(tables)
	}
	return found
}

// IsMainMetric reports whether the figure's metric represents the aspect Traffic or Typical at its step.
func (e *Evidence) IsMainMetric(at FigureKey) bool {
	row := at.Row()
	if row.Aspect != result.Traffic && row.Aspect != result.Typical {
		return false
	}
	return at.Metric == result.MainMetricOf(row.Aspect, func(name string) bool { return len(e.Figures[at.With(name)]) > 0 })
}

// wholeTogether returns the rounds that are whole at each of the places. Places with so few
// that too few would be left, e.g. of a step that was taken in the first rounds only, are left
// out of the places.
func wholeTogether(e *Evidence, places []FigureKey) (kept []FigureKey, rounds []int) {
	whole := map[FigureKey][]int{}
	for _, at := range places {
		whole[at] = wholeRounds(e, at)
	}
	byWhole := slices.Clone(places)
	slices.SortStableFunc(byWhole, func(a, b FigureKey) int { return len(whole[b]) - len(whole[a]) })
	for i, at := range byWhole {
		common := whole[at]
		if i > 0 {
			common = slices.DeleteFunc(slices.Clone(rounds), func(round int) bool { return !slices.Contains(whole[at], round) })
		}
		if i == 0 || len(common) >= stat.MinSerial {
			kept, rounds = append(kept, at), common
		}
	}
	return kept, rounds
}

// wholeRounds returns the rounds in which most contenders of the place have a value. The last
// round of an interrupted run is none of them.
func wholeRounds(e *Evidence, at FigureKey) []int {
	measured := map[int]int{} // how many contenders have a value, by round
	for _, s := range e.Figures[at] {
		for round := range s {
			measured[round]++
		}
	}
	maps.DeleteFunc(measured, func(_, n int) bool { return 2*n <= len(e.Figures[at]) })
	return SortedKeys(measured)
}

// table returns the contenders' values, a row for each contender in the order and a column
// for each round, NaN for a missing value.
func table(contenders map[string]Series, order []string, rounds []int) [][]float64 {
	var rows [][]float64
	for _, c := range order {
		row := make([]float64, len(rounds))
		for i, round := range rounds {
			v, measured := contenders[c][round]
			if !measured {
				v = math.NaN()
			}
			row[i] = v
		}
		rows = append(rows, row)
	}
	return rows
}
