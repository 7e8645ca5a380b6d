package recommend

import (
	"math"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// Criterion is something that a choice is scored by.
type Criterion struct {
	Name   string
	Help   string
	Weight float64 // default
	Suite  string  // suites that measure it

	// takes says whether the criterion uses the figures of a place. It is nil for
	// stability, which uses the figures of all other criteria.
	takes func(e *analysis.Evidence, at analysis.FigureKey) bool
}

// Criteria lists the criteria in the order of listings.
func Criteria() []Criterion {
	return []Criterion{
		// Goodput and CPU per Gbit/s are one criterion: if the CPU is the limit, they are the same figure.
		{Name: "capacity", Help: "goodput of TCP and its CPU per Gbit/s, together", Weight: 1, Suite: "quick, throughput", takes: isCapacity},
		{Name: "latency", Help: "median and p99, together: of network time, else of latency", Weight: 1, Suite: "quick, latency, rr", takes: isLatency},
		{Name: "cpu", Help: "CPU by request, at a load that is the same for all", Weight: 1, Suite: "quick, latency, rr", takes: isCPU},
		{Name: "memory", Help: "memory of idle nodes", Weight: 0.5, Suite: "throughput (on a cluster)", takes: func(e *analysis.Evidence, at analysis.FigureKey) bool {
			return at.Metric == result.MemoryUsed && !analysis.SharesMemory(e.Run.Arena) && e.HasMetric(at, result.MemoryOverhead)
		}},
		{Name: "setup-time", Help: "time until the first pods reach each other", Suite: "any", takes: func(_ *analysis.Evidence, at analysis.FigureKey) bool {
			return at.Metric == result.SetupTime
		}},
		{Name: "tail", Help: "p99 and p99.9, together: of network time, else of latency", Suite: "latency", takes: func(e *analysis.Evidence, at analysis.FigureKey) bool {
			return at.Row().Percent >= 99 && at.Row().Clock == findRankedClock(e, at)
		}},
		{Name: "services", Help: "capacity, latency and cpu of traffic through a Service, at the largest number of Services of the run", Suite: "services", takes: func(e *analysis.Evidence, at analysis.FigureKey) bool {
			return amongMostServices(e, at.Step) && (isCapacity(e, at) || isLatency(e, at) || isCPU(e, at))
		}},
		{Name: "stability", Help: "how little the figures above differ between rounds", Suite: "any, with more rounds"},
	}
}

func isCapacity(e *analysis.Evidence, at analysis.FigureKey) bool {
	return (at.Metric == result.Goodput || at.Metric == result.CPUPerGbit) && !e.Datagrams(at)
}

func isLatency(e *analysis.Evidence, at analysis.FigureKey) bool {
	row := at.Row()
	if at.Metric == result.LatencyMean {
		return !e.HasMetric(at, result.LatencyP50)
	}
	return (row.Percent == 50 || row.Percent == 99) && row.Clock == findRankedClock(e, at)
}

func isCPU(e *analysis.Evidence, at analysis.FigureKey) bool {
	return at.Metric == result.CPUPerRequest && !e.HasMetric(at, result.CPUPerGbit)
}

// amongMostServices says whether the step goes through a Service and has the largest number
// of other Services of all such steps of the run.
func amongMostServices(e *analysis.Evidence, step string) bool {
	maximum, own := 0, -1
	for _, s := range e.Run.Plan.Steps {
		if e.Paths[s.ID] == "service" {
			maximum = max(maximum, s.Services)
			if s.ID == step {
				own = s.Services
			}
		}
	}
	return own == maximum
}

// CriterionNames returns the names of Criteria.
func CriterionNames() []string {
	var names []string
	for _, c := range Criteria() {
		names = append(names, c.Name)
	}
	return names
}

// gauge is a figure of the contenders of a group, turned into merits by round. A merit is
// the logarithm of the ratio to the baseline, with the sign for which higher is better. If
// rounds are unpaired, it is the logarithm of the figure itself.
type gauge struct {
	analysis.FigureKey
	criterion int
	merits    map[string]analysis.Series // by contender
	base      analysis.Series            // merits of the baseline; nil if rounds are paired
}

// gauges returns the gauges of a group, in the order of the places. A criterion without
// weight has gauges only if stability has weight and the criterion has a default weight.
func gauges(e *analysis.Evidence, g analysis.ComparableSet, weights []analysis.Weight) []gauge {
	var list []gauge
	criteria, all := Criteria(), false
	for i, c := range criteria {
		all = all || c.takes == nil && weights[i].Weight > 0
	}
	for i, c := range criteria {
		if c.takes == nil || weights[i].Weight == 0 && !(all && c.Weight > 0) {
			continue
		}
		for _, at := range e.Keys {
			base := e.Figures[e.BaseOf(at)][e.Run.Baseline]
			if at.ComparableSet != g || !c.takes(e, at) || len(base) == 0 {
				continue
			}
			figures := e.Figures[at]
			if at.Row().Has(result.Ranked) {
				figures = e.SelectRankable(at, figures)
			}
			metric, _ := result.LookupMetric(at.Metric)
			x := gauge{FigureKey: at, criterion: i, merits: map[string]analysis.Series{}}
			if e.Unpaired() {
				x.base = seriesLogs(base, metric.Better)
			}
			for contender, values := range figures {
				s := merit(values, base, metric.Better)
				if e.Unpaired() {
					s = unpairedMerit(values, x.base, metric.Better)
				}
				if len(s) > 0 && !e.IsHost(contender) {
					x.merits[contender] = s
				}
			}
			if len(x.merits) > 0 && usable(e, at) {
				list = append(list, x)
			}
		}
	}
	return list
}

// MaxMissed is the largest difference that a figure may miss for a typical contender and
// still count in a choice.
const MaxMissed = 0.30

// usable reports whether a latency of a place counts: a typical contender's smallest
// detectable difference is at most MaxMissed, or no figure of the run has one.
func usable(e *analysis.Evidence, at analysis.FigureKey) bool {
	var missed []float64
	for i := range e.Results {
		if r := &e.Results[i]; r.FigureKey() == at && r.Contender != e.Run.Baseline && r.MDD != nil {
			missed = append(missed, *r.MDD)
		}
	}
	return at.Row().Clock == "" || len(missed) == 0 || stat.Median(missed) <= MaxMissed
}

// farthest is the largest log ratio that a measurement can give. With a larger one, a score
// might not be finite.
const farthest = 100

// merit returns the merits by round, or nil if a ratio can't be formed.
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

// seriesLogs returns the logarithms of the values, with the sign for which higher is better.
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

// unpairedMerit returns the merits by round, or nil if the ratio to some round of the
// baseline can't be formed.
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

// rankedClocks are the clocks for the criterion latency. The first that a step has counts.
var rankedClocks = []string{"network_time", "latency", "service_time"}

func findRankedClock(e *analysis.Evidence, at analysis.FigureKey) string {
	for _, clock := range rankedClocks {
		if e.HasMetric(at, clock+"_p50") {
			return clock
		}
	}
	return ""
}
