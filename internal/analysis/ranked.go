package analysis

import (
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// MostLoss is the share of datagrams beyond which goodput says what was
// dropped, not what the path carries.
const MostLoss = 0.10

// Row is the row of the place's metric in the catalogue.
func (at Place) Row() result.Metric {
	m, _ := result.LookupMetric(at.Metric)
	return m
}

// Ranked are the contenders of a place whose figures may be ranked: with
// values of single rounds, and where the figures are what they say.
func (e *Evidence) Ranked(at Place, contenders map[string]Series) map[string]Series {
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

// Lossy says that a figure describes the sender and not the path, because too
// many datagrams were lost, or because nobody counted the losses of UDP.
func (e *Evidence) Lossy(at Place, contender string) bool {
	row := at.Row()
	if row.Name != result.Goodput && row.Per == "" {
		return false
	}
	loss := e.Figures[at.With(result.Loss)][contender]
	if len(loss) == 0 {
		return row.Per != result.Rate && e.IsUDP(at.Step)
	}
	return stat.Median(loss.Values()) > MostLoss
}
