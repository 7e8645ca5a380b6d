package analysis

import (
	"maps"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// This file chooses the one figure that stands for a contender at a place.
// Percentiles are never averaged: that of a latency is taken from the requests
// of all rounds together.

// pool is the requests of a contender's valid rounds on one clock of a step.
type pool struct {
	Group
	Contender, Step, Clock string
	rounds                 int
	merged                 *hdrhistogram.Histogram
}

// pools merges the histograms of all valid rounds, in the order in which the
// samples first appear, clocks by name.
func pools(valid []*result.Sample) []pool {
	type key struct {
		Group
		Contender, Step, Clock string
	}
	var order []key
	rounds := map[key][]*hdrhistogram.Histogram{}
	for _, s := range valid {
		for _, clock := range slices.Sorted(maps.Keys(s.Histograms)) {
			k := key{GroupOf(s), s.Contender, s.Step, clock}
			if rounds[k] == nil {
				order = append(order, k)
			}
			rounds[k] = append(rounds[k], s.Histograms[clock])
		}
	}
	var list []pool
	for _, k := range order {
		if merged := merge(rounds[k]); merged.TotalCount() > 0 {
			list = append(list, pool{k.Group, k.Contender, k.Step, k.Clock, len(rounds[k]), merged})
		}
	}
	return list
}

// percentile is a value of a pool, with what is behind it.
type percentile struct {
	seconds float64
	rounds  int
	count   int64
}

// addPercentiles notes the percentiles that reports name, as far as the count
// of all rounds together carries them, and makes a place of each.
func (e *Evidence) addPercentiles() {
	for _, p := range e.Pools {
		for _, named := range result.Percentiles {
			at := Place{p.Group, p.Step, p.Clock + "_" + named.Name}
			if _, known := result.LookupMetric(at.Metric); !known || !carries(p.merged.TotalCount(), named.Value) {
				continue
			}
			if e.Percentiles[at] == nil {
				e.Percentiles[at] = map[string]percentile{}
			}
			e.Percentiles[at][p.Contender] = percentile{
				seconds: float64(p.merged.ValueAtPercentile(named.Value)) / 1e9, rounds: p.rounds, count: p.merged.TotalCount(),
			}
			if e.Figures[at] == nil {
				e.Figures[at] = map[string]Series{}
			}
			if e.Figures[at][p.Contender] == nil {
				e.Figures[at][p.Contender] = Series{} // no single round carries it
			}
		}
	}
}

// headline is the figure that stands for a contender at a place: the
// percentile of all rounds' requests together, without histograms that of a
// middle round, of anything else the median of the rounds; NaN of none.
func (e *Evidence) Headline(at Place, contender string) float64 {
	if p, pooled := e.Percentiles[at][contender]; pooled {
		return p.seconds
	}
	values := e.Figures[at][contender].Values()
	if at.Row().Percent > 0 {
		return stat.LowerMedian(values)
	}
	return stat.Median(values)
}
