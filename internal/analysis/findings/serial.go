package findings

import (
	"fmt"
	"math"

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
		var tables [][][]float64
		for _, at := range e.Places {
			if at.Group == g && usual(e, at) {
				tables = append(tables, inRounds(e, at))
			}
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

// inRounds are the values of a place by contender and round, NaN for none.
func inRounds(e *evidence, at analysis.Place) [][]float64 {
	var table [][]float64
	for _, c := range e.Ordered(e.Figures[at]) {
		row := make([]float64, e.Rounds())
		for i := range row {
			v, measured := e.Figures[at][c][i+1]
			if !measured {
				v = math.NaN()
			}
			row[i] = v
		}
		table = append(table, row)
	}
	return table
}
