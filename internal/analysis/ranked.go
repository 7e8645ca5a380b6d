package analysis

import (
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// MaxLoss is the share of lost datagrams above which the goodput shows how many were
// dropped, and not what the path carries.
const MaxLoss = 0.10

// Row returns the catalogue's row of the place's metric.
func (at FigureKey) Row() result.Metric {
	m, _ := result.LookupMetric(at.Metric)
	return m
}

// SelectRankable returns the contenders of a place that may be ranked: those with values of
// single rounds whose figures describe the path.
func (e *Evidence) SelectRankable(at FigureKey, contenders map[string]Series) map[string]Series {
	list := map[string]Series{}
	if row := at.Row(); !row.Has(result.Ranked) || row.Name == result.Rate && e.Pace(at.Step) > 0 || row.Has(result.CPUTime) && e.Aliased(at.Step) {
		return list
	}
	for c, s := range contenders {
		if len(s) > 0 && !e.Lossy(at, c) {
			list[c] = s
		}
	}
	return list
}

// Lossy says whether a figure describes the sender and not the path, because too many
// datagrams were lost, or because the losses of UDP were not counted.
func (e *Evidence) Lossy(at FigureKey, contender string) bool {
	row := at.Row()
	if row.Name != result.Goodput && row.Per == "" {
		return false
	}
	loss := e.Figures[at.With(result.Loss)][contender]
	if len(loss) == 0 {
		return row.Per != result.Rate && e.IsUDP(at.Step)
	}
	return stat.Median(loss.Values()) > MaxLoss
}
