package analysis

import (
	"maps"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// This file chooses the one figure of a contender at a place that reports show.
// Percentiles are never averaged: a latency percentile is that of the requests of all
// rounds together.

// pool holds the requests of all valid rounds of a contender at a step, by one clock.
type pool struct {
	ComparableSet
	Contender, Step, Clock string
	rounds                 int
	merged                 *hdrhistogram.Histogram
	byRound                map[int]stat.Requests
}

// pools merges the histograms of all valid rounds, in the order in which the
// samples first appear, clocks by name.
func pools(valid []*result.Sample) []pool {
	type key struct {
		ComparableSet
		Contender, Step, Clock string
	}
	var order []key
	rounds := map[key][]*hdrhistogram.Histogram{}
	requests := map[key]map[int]stat.Requests{}
	for _, s := range valid {
		for _, clock := range slices.Sorted(maps.Keys(s.Histograms)) {
			k := key{SetOf(s), s.Contender, s.Step, clock}
			if rounds[k] == nil {
				order = append(order, k)
				requests[k] = map[int]stat.Requests{}
			}
			rounds[k] = append(rounds[k], s.Histograms[clock])
			if h := s.Histograms[clock]; h.TotalCount() > 0 {
				requests[k][s.Round] = requestsOf(h)
			}
		}
	}
	var list []pool
	for _, k := range order {
		if merged := merge(rounds[k]); merged.TotalCount() > 0 {
			list = append(list, pool{k.ComparableSet, k.Contender, k.Step, k.Clock, len(rounds[k]), merged, requests[k]})
		}
	}
	return list
}

// requestsOf returns a histogram's values, in nanoseconds, for package stat.
func requestsOf(h *hdrhistogram.Histogram) stat.Requests {
	var values []float64
	var counts []int64
	for _, bar := range h.Distribution() {
		if bar.Count > 0 {
			values, counts = append(values, float64(max(1, bar.To))), append(counts, bar.Count)
		}
	}
	return stat.NewRequests(values, counts)
}

// percentile is a percentile of a pool, with the requests that it comes from.
type percentile struct {
	seconds float64
	rounds  int
	count   int64
	level   float64 // 0 to 1
	byRound map[int]stat.Requests
}

// interval returns the percentile's interval; nil with too few rounds.
func (p *percentile) interval(confidence float64) *Interval {
	var rounds []stat.Requests
	for _, round := range SortedKeys(p.byRound) {
		rounds = append(rounds, p.byRound[round])
	}
	low, high, ok := stat.QuantileInterval(rounds, p.level, confidence)
	if !ok {
		return nil
	}
	return &Interval{low / 1e9, high / 1e9}
}

// ratioTo returns the ratio of the percentile to the baseline's, from the rounds that both
// have; nil if there are none.
func (p *percentile) ratioTo(base percentile, confidence, inflation float64) *Comparison {
	var values, baseValues []stat.Requests
	for _, round := range SortedKeys(p.byRound) {
		if other, both := base.byRound[round]; both {
			values, baseValues = append(values, p.byRound[round]), append(baseValues, other)
		}
	}
	if len(values) == 0 {
		return nil
	}
	s, chance := stat.QuantileRatio(values, baseValues, p.level, confidence, inflation)
	c := toComparison(s)
	c.Pairs = len(values)
	if len(values) > 1 {
		c.P = &chance
	}
	return c
}

// addPercentiles adds the percentiles that reports name, if all rounds together have
// enough values beyond them, and a place in Figures for each.
func (e *Evidence) addPercentiles() {
	for _, p := range e.Pools {
		for _, named := range result.Percentiles {
			at := FigureKey{p.ComparableSet, p.Step, p.Clock + "_" + named.Name}
			if _, known := result.LookupMetric(at.Metric); !known || !result.EnoughFor(named.Value, p.merged.TotalCount()) {
				continue
			}
			if e.Percentiles[at] == nil {
				e.Percentiles[at] = map[string]percentile{}
			}
			e.Percentiles[at][p.Contender] = percentile{
				seconds: float64(p.merged.ValueAtPercentile(named.Value)) / 1e9, rounds: p.rounds, count: p.merged.TotalCount(),
				level: named.Value / 100, byRound: p.byRound,
			}
			if e.Figures[at] == nil {
				e.Figures[at] = map[string]Series{}
			}
			if e.Figures[at][p.Contender] == nil {
				e.Figures[at][p.Contender] = Series{} // no single round has enough values beyond it
			}
		}
	}
}

// Headline returns the figure of a contender at a place that reports show: the median of
// the rounds, or for a percentile that of all rounds' requests together (without
// histograms: that of a middle round). It is NaN without values.
func (e *Evidence) Headline(at FigureKey, contender string) float64 {
	if p, pooled := e.Percentiles[at][contender]; pooled {
		return p.seconds
	}
	values := e.Figures[at][contender].Values()
	if at.Row().Percent > 0 {
		return stat.LowerMedian(values)
	}
	return stat.Median(values)
}
