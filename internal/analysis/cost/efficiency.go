// Package cost says what traffic costs: CPU, memory and energy for each
// contender, groups of contenders with similar costs, and the cost of a fleet.
// It reads the evidence of one run. Next: efficiency.go.
package cost

import (
	"fmt"
	"math"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// Efficiencies returns the cost of traffic at every step that has goodput, ordered by
// group, step and contender.
func Efficiencies(e *analysis.Evidence) []analysis.Efficiency {
	var list []analysis.Efficiency
	for _, at := range e.Keys {
		if at.Metric != result.Goodput {
			continue
		}
		var here []analysis.Efficiency
		for _, contender := range e.Ordered(e.Figures[at]) {
			here = append(here, efficiency(e, at, contender))
		}
		markFrontier(e, at, here)
		markClusters(e, at, here)
		list = append(list, here...)
	}
	return list
}

func efficiency(e *analysis.Evidence, at analysis.FigureKey, contender string) analysis.Efficiency {
	series := func(metric string) analysis.Series {
		return e.Figures[at.With(metric)][contender]
	}
	goodput := e.Figures[at][contender]
	list := analysis.Efficiency{
		Contender: contender, Kernel: at.Kernel, Underlay: at.Underlay, Step: at.Step, Path: e.Paths[at.Step],
		Goodput:        *estimate(e, goodput),
		CPUPerGbit:     estimate(e, series(result.CPUPerGbit)),
		UserSystem:     estimate(e, series(result.CPUPerGbitUserSystem)),
		Published:      published(goodput, series(result.CPUPerGbitPublished)),
		MemoryOverhead: estimate(e, overBaseline(e, at.With(result.MemoryUsed), contender)),
	}
	if e.Unpaired() && list.MemoryOverhead != nil {
		list.MemoryOverhead.CI = nil // the interval would not contain the baseline's noise
	}
	list.Energy = energy(e, at, contender, list.CPUPerGbit)
	return list
}

// estimate returns the median of s with its interval, or nil if s is empty.
func estimate(e *analysis.Evidence, s analysis.Series) *analysis.Estimate {
	if len(s) == 0 {
		return nil
	}
	return &analysis.Estimate{Median: stat.Median(s.Values()), CI: analysis.MedianInterval(s.Values(), e.Opt.Confidence)}
}

// overBaseline returns by how much a contender's values exceed the baseline's value of the
// same round; if rounds are unpaired, the baseline's median. It is empty for the baseline.
func overBaseline(e *analysis.Evidence, at analysis.FigureKey, contender string) analysis.Series {
	over := analysis.Series{}
	if contender == e.Run.Baseline {
		return over
	}
	base := e.Figures[at][e.Run.Baseline]
	if len(base) == 0 { // the baseline has no Services: as in the 2024 study, the same load from pod to pod stands in
		base = e.Figures[analysis.FigureKey{ComparableSet: at.ComparableSet, Step: e.Direct(at.Step), Metric: at.Metric}][e.Run.Baseline]
	}
	for round, v := range e.Figures[at][contender] {
		if base, measured := e.BaseOfRound(base, round); measured {
			over[round] = v - base
		}
	}
	return over
}

// published returns the 2024 study's figure: the most CPU time of all rounds divided by the
// best goodput of all rounds, which may be another round. perGbit is each round's CPU time
// by that study's formula, divided by the goodput of the same round.
func published(goodput, perGbit analysis.Series) *float64 {
	most, best := 0.0, 0.0
	for round, v := range perGbit {
		most = max(most, v*goodput[round])
	}
	for _, v := range goodput {
		best = max(best, v)
	}
	if most <= 0 || best <= 0 {
		return nil
	}
	figure := most / best
	return &figure
}

// markFrontier sets Frontier for each contender unless another has both more goodput and
// less CPU per Gbit. It compares medians, so a contender on the frontier and its neighbour
// may not differ. The baseline is ignored, because it is no pod network to choose. CPU time
// of user and system only is ignored, too: a lower bound does not show which contender
// costs more.
func markFrontier(e *analysis.Evidence, at analysis.FigureKey, here []analysis.Efficiency) {
	candidate := func(x *analysis.Efficiency) bool {
		return x.Contender != e.Run.Baseline && x.CPUPerGbit != nil && !e.Lossy(at, x.Contender)
	}
	for i := range here {
		x := &here[i]
		x.Frontier = candidate(x)
		for j := range here {
			if y := &here[j]; x.Frontier && i != j && candidate(y) &&
				dominates(y.Goodput.Median, y.CPUPerGbit.Median, x.Goodput.Median, x.CPUPerGbit.Median) {
				x.Frontier = false
			}
		}
	}
}

// dominates says whether a is at least as good as b in goodput and CPU, and better in one.
func dominates(goodputA, cpuA, goodputB, cpuB float64) bool {
	return goodputA >= goodputB && cpuA <= cpuB && (goodputA > goodputB || cpuA < cpuB)
}

const (
	gbitPerGB     = 8
	hoursPerMonth = 730
)

// energy returns the energy per gigabyte. It comes from the nodes' CPU packages if their
// energy was recorded, else from the user's figure for the power of a busy core.
func energy(e *analysis.Evidence, at analysis.FigureKey, contender string, cpu *analysis.Estimate) *analysis.Energy {
	var joules []float64
	for i := range e.Opt.Traces {
		t := &e.Opt.Traces[i]
		s := e.ValidSample(t.Key)
		if s == nil || analysis.SetOf(s) != at.ComparableSet || s.Step != at.Step || s.Contender != contender {
			continue
		}
		if s.Slices != nil {
			continue // the packages' power is that of all contenders that took turns meanwhile
		}
		if watts := power(e, t); watts > 0 && s.Metrics[result.Goodput] > 0 {
			joules = append(joules, watts/(s.Metrics[result.Goodput]/1e9/gbitPerGB))
		}
	}
	switch {
	case len(joules) > 0:
		return &analysis.Energy{JoulesPerGB: stat.Median(joules), Measured: true,
			Basis: "energy of the nodes' CPU packages (RAPL), idle power included, median of the rounds"}
	case e.Opt.WattsPerCore > 0 && cpu != nil:
		return &analysis.Energy{JoulesPerGB: e.Opt.WattsPerCore * cpu.Median * gbitPerGB,
			Basis: fmt.Sprintf("estimate: %g W for each busy core, as given; nothing was measured", e.Opt.WattsPerCore)}
	}
	return nil
}

// power returns the mean power of a sample's nodes together in the window (W); NaN if a
// node has no record. If the nodes share a machine, the machine counts once.
func power(e *analysis.Evidence, t *analysis.Trace) float64 {
	total, nodes := 0.0, 0
	for i := range t.Nodes {
		watts := analysis.FiniteOnly(t.Nodes[i].Within(t.Nodes[i].Power))
		if len(watts) == 0 {
			return math.NaN()
		}
		total += stat.Mean(watts)
		nodes++
	}
	if e.OneMachine() && nodes > 0 {
		total /= float64(nodes)
	}
	return total
}
