package recommend

import (
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
)

// Criterion is something that a choice is scored by.
type Criterion struct {
	Name   string
	Help   string
	Weight float64 // where none is asked for
	Suite  string  // what measures it

	// takes says that the figures of a place count; nil where the criterion
	// is about figures of all the others.
	takes func(e *analysis.Evidence, at analysis.Place) bool
}

// Criteria lists what choices are scored by, in the order of listings.
func Criteria() []Criterion {
	return []Criterion{
		{Name: "throughput", Help: "goodput of TCP", Weight: 1, Suite: "quick, throughput", takes: func(e *analysis.Evidence, at analysis.Place) bool {
			return at.Metric == result.Goodput && !e.Datagrams(at)
		}},
		{Name: "latency", Help: "median and p99 latency, together", Weight: 1, Suite: "quick, latency, rr", takes: func(e *analysis.Evidence, at analysis.Place) bool {
			clock, _, _ := strings.Cut(at.Metric, "_p")
			switch {
			case at.Metric == result.LatencyMean:
				return !e.HasMetric(at, result.LatencyP50)
			case clock == "latency", clock == "service_time" && !e.HasMetric(at, result.LatencyP50):
				return strings.HasSuffix(at.Metric, "_p50") || strings.HasSuffix(at.Metric, "_p99")
			}
			return false
		}},
		{Name: "cpu", Help: "CPU per Gbit/s, and by request where a step has no goodput", Weight: 1, Suite: "quick, throughput", takes: func(e *analysis.Evidence, at analysis.Place) bool {
			return at.Metric == result.CPUPerGbit && !e.Datagrams(at) ||
				at.Metric == result.CPUPerRequest && !e.HasMetric(at, result.CPUPerGbit)
		}},
		{Name: "memory", Help: "memory of idle nodes", Weight: 0.5, Suite: "throughput (on a cluster)", takes: func(e *analysis.Evidence, at analysis.Place) bool {
			return at.Metric == result.MemoryUsed && !analysis.SharedMemory(e.Run.Arena) && e.HasMetric(at, result.MemoryOverhead)
		}},
		{Name: "setup-time", Help: "time until the first pods reach each other", Suite: "any", takes: func(_ *analysis.Evidence, at analysis.Place) bool {
			return at.Metric == result.SetupTime
		}},
		{Name: "stability", Help: "how little the figures above differ between rounds", Suite: "any, with more rounds"},
	}
}

// CriterionNames are the names of Criteria.
func CriterionNames() []string {
	var names []string
	for _, c := range Criteria() {
		names = append(names, c.Name)
	}
	return names
}

// gauge is one figure of the contenders of a group, turned into merit, higher
// is better: the logarithm of its ratio to the baseline's in each round. Where
// rounds are no pairs it is that of the figure itself, and base the
// baseline's.
type gauge struct {
	analysis.Place
	criterion int
	merits    map[string]analysis.Series
	base      analysis.Series // nil where rounds are pairs
}

// gauges are those of a group, in the order of the places. A criterion of no
// weight has none, unless one about all the figures has weight.
func gauges(e *analysis.Evidence, g analysis.Group, weights []analysis.Weight) []gauge {
	var list []gauge
	criteria, all := Criteria(), false
	for i, c := range criteria {
		all = all || c.takes == nil && weights[i].Weight > 0
	}
	for i, c := range criteria {
		if c.takes == nil || weights[i].Weight == 0 && !(all && c.Weight > 0) {
			continue
		}
		for _, at := range e.Places {
			base := e.Figures[e.BaseOf(at)][e.Run.Baseline]
			if at.Group != g || !c.takes(e, at) || len(base) == 0 {
				continue
			}
			figures := e.Figures[at]
			if at.Row().Has(result.Ranked) {
				figures = e.Ranked(at, figures)
			}
			metric, _ := result.LookupMetric(at.Metric)
			x := gauge{Place: at, criterion: i, merits: map[string]analysis.Series{}}
			if e.Unpaired() {
				x.base = seriesLogs(base, metric.Better)
			}
			for contender, values := range figures {
				s := merit(values, base, metric.Better)
				if e.Unpaired() {
					s = unpairedMerit(values, x.base, metric.Better)
				}
				if len(s) > 0 && contender != e.Run.Baseline {
					x.merits[contender] = s
				}
			}
			if len(x.merits) > 0 {
				list = append(list, x)
			}
		}
	}
	return list
}

// farthest is the largest log ratio that a measurement gives; beyond, a score
// is no finite number.
const farthest = 100

// merit is the log ratio by round, nil where one can't be formed.
func merit(values, base analysis.Series, better string) analysis.Series {
	s := analysis.Series{}
	for round, v := range values {
		b, both := base[round]
		if !both {
			continue
		}
		l := math.Log(v / b)
		if !(math.Abs(l) <= farthest) {
			return nil
		}
		if better != "higher" {
			l = -l
		}
		s[round] = l
	}
	return s
}

// seriesLogs are the logarithms of the values, turned so that higher is better.
func seriesLogs(values analysis.Series, better string) analysis.Series {
	s := analysis.Series{}
	for round, v := range values {
		s[round] = math.Log(v)
		if better != "higher" {
			s[round] = -s[round]
		}
	}
	return s
}

// unpairedMerit is the figure's own logarithm by round, nil where the ratio to
// a round of the baseline can't be formed.
func unpairedMerit(values, base analysis.Series, better string) analysis.Series {
	s := seriesLogs(values, better)
	for _, v := range s {
		for _, b := range base {
			if !(math.Abs(v-b) <= farthest) {
				return nil
			}
		}
	}
	return s
}

// drawnMiddle is the median of the drawn values.
func drawnMiddle(values []float64, drawn []int, scratch []float64) float64 {
	return middleOf(drawnValues(values, drawn, scratch))
}

// drawnShift is the median distance of the drawn values from those drawn of
// the baseline, over all pairs: Hodges and Lehmann's.
func drawnShift(values []float64, drawn []int, base []float64, drawnBase []int) float64 {
	own, beside := drawnValues(values, drawn, nil), drawnValues(base, drawnBase, nil)
	shifts := make([]float64, 0, len(own)*len(beside))
	for _, v := range own {
		for _, b := range beside {
			shifts = append(shifts, v-b)
		}
	}
	return middleOf(shifts)
}

// middleOf sorts the values and is their median.
func middleOf(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return values[(n-1)/2]/2 + values[n/2]/2
}

// drawnValues are the drawn values, each as often as it was drawn; all where
// none of them was. NaN stands for a round without a value.
func drawnValues(values []float64, drawn []int, scratch []float64) []float64 {
	scratch = scratch[:0]
	for _, i := range drawn {
		if v := values[i]; !math.IsNaN(v) {
			scratch = append(scratch, v)
		}
	}
	if len(scratch) == 0 {
		for _, v := range values {
			if !math.IsNaN(v) {
				scratch = append(scratch, v)
			}
		}
	}
	return scratch
}

// steadiness is the merit of figures that differ little between rounds: the
// median distance of their logarithms from the middle, negative.
func steadiness(values []float64, drawn []int, scratch []float64) float64 {
	middle := drawnMiddle(values, drawn, scratch)
	scratch = scratch[:0]
	for _, i := range drawn {
		if v := values[i]; !math.IsNaN(v) {
			scratch = append(scratch, math.Abs(v-middle))
		}
	}
	if len(scratch) == 0 {
		return 0
	}
	return -middleOf(scratch)
}
