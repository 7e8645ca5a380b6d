package analysis

import (
	"maps"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// cycled is a place and a round in which contenders took slices in turns.
type cycled struct {
	FigureKey
	round int
}

// levelCycles replaces the figures of samples that were measured in slices by levels
// over their cycles (stat.Cycled). The ratio of two contenders in a round then is the
// ratio in a typical cycle: changes of the machine from cycle to cycle cancel out.
// Percentiles of merged histograms are left as they are, because levels would average the
// percentiles of slices. They are comparable: all contenders have their requests in the
// same cycles.
func (e *Evidence) levelCycles() {
	all := map[cycled]stat.Cycled{}
	plain := map[cycled]bool{} // 0 is a value as any other there, e.g. of a loss
	for _, s := range e.Valid {
		if s.Slices == nil {
			continue
		}
		for metric, values := range s.Slices.Metrics {
			at := cycled{FigureKey{SetOf(s), s.Step, metric}, s.Round}
			if _, has := e.Figures[at.FigureKey][s.Contender][s.Round]; !has || e.byKey[s.Key()] != s || isMerged(metric) {
				continue
			}
			if all[at] == nil {
				all[at] = stat.Cycled{}
			}
			all[at][s.Contender] = byCycle(s.Slices.Cycles, values)
			if m, _ := result.LookupMetric(metric); m.Has(result.MayBeZero) && slices.Contains(values, 0) {
				plain[at] = true
			}
		}
	}
	maps.DeleteFunc(all, func(at cycled, _ stat.Cycled) bool { return plain[at] })
	for at, values := range all {
		for contender, level := range values.Levels() {
			e.Figures[at.FigureKey][contender][at.round] = level
		}
	}
}

// isMerged says whether the metric is a percentile of the requests of all slices of a sample:
// those of a sliced sample always are (workload.Slicer), whether its histograms are at hand
// or not.
func isMerged(metric string) bool {
	m, _ := result.LookupMetric(metric)
	return m.Percent > 0
}

// byCycle returns one value for each cycle: the geometric mean if a contender has
// several slices in the cycle.
func byCycle(cycles []int, values []float64) map[int]float64 {
	logs, counts := map[int]float64{}, map[int]float64{}
	for i, cycle := range cycles {
		if i < len(values) {
			logs[cycle] += math.Log(values[i])
			counts[cycle]++
		}
	}
	out := map[int]float64{}
	for cycle := range logs {
		out[cycle] = math.Exp(logs[cycle] / counts[cycle])
	}
	return out
}
