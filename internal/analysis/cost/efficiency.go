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

// Efficiencies are in the order of results: group, step, contender. Every step
// that has goodput has them.
func Efficiencies(e *analysis.Evidence) []analysis.Efficiency {
	var list []analysis.Efficiency
	for _, at := range e.Places {
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

func efficiency(e *analysis.Evidence, at analysis.Place, contender string) analysis.Efficiency {
	beside := func(metric string) analysis.Series {
		return e.Figures[at.With(metric)][contender]
	}
	goodput := e.Figures[at][contender]
	list := analysis.Efficiency{
		Contender: contender, Kernel: at.Kernel, Underlay: at.Underlay, Step: at.Step, Path: e.Paths[at.Step],
		Goodput:        *estimate(e, goodput),
		CPUPerGbit:     estimate(e, beside(result.CPUPerGbit)),
		UserSystem:     estimate(e, beside(result.CPUPerGbitUserSystem)),
		Published:      published(goodput, beside(result.CPUPerGbitPublished)),
		MemoryOverhead: estimate(e, overBaseline(e, at.With(result.MemoryUsed), contender)),
	}
	if e.Unpaired() && list.MemoryOverhead != nil {
		list.MemoryOverhead.CI = nil // it would leave the baseline's own noise out
	}
	list.Energy = energy(e, at, contender, list.CPUPerGbit)
	return list
}

// estimate is nil of no values.
func estimate(e *analysis.Evidence, s analysis.Series) *analysis.Estimate {
	if len(s) == 0 {
		return nil
	}
	return &analysis.Estimate{Median: stat.Median(s.Values()), CI: analysis.MedianInterval(s.Values(), e.Opt.Confidence)}
}

// overBaseline is what a contender has more of than the baseline of the same
// round, or of its middle round where rounds are no pairs; nothing for the
// baseline itself.
func overBaseline(e *analysis.Evidence, at analysis.Place, contender string) analysis.Series {
	over := analysis.Series{}
	if contender == e.Run.Baseline {
		return over
	}
	base := e.Figures[at][e.Run.Baseline]
	if len(base) == 0 { // hosts have no Services: as the study did, the same load without
		base = e.Figures[analysis.Place{Group: at.Group, Step: e.Direct(at.Step), Metric: at.Metric}][e.Run.Baseline]
	}
	for round, v := range e.Figures[at][contender] {
		if base, beside := e.BaseOfRound(base, round); beside {
			over[round] = v - base
		}
	}
	return over
}

// published is the 2024 study's figure: the most CPU of all rounds over the
// best goodput of all rounds, which need not be the same round. perGbit is
// the CPU by that study's formula in each round, by the round's own goodput.
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

// markFrontier marks the contenders that no other has more goodput for less
// CPU than, by the medians: neighbours may be alike. The baseline is no choice
// of pod network, so that it neither is on the frontier nor hides anybody.
// CPU of user and system only is a lower bound that says nothing of who costs
// more, so that it makes no frontier.
func markFrontier(e *analysis.Evidence, at analysis.Place, here []analysis.Efficiency) {
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

// dominates says that a is no worse than b in goodput and CPU, and better in one.
func dominates(goodputA, cpuA, goodputB, cpuB float64) bool {
	return goodputA >= goodputB && cpuA <= cpuB && (goodputA > goodputB || cpuA < cpuB)
}

const (
	gbitPerGB     = 8
	hoursPerMonth = 730
)

// energy is what the nodes' CPU packages took per gigabyte, where their
// recorders saw it; else what the user's figure for a busy core makes of it.
func energy(e *analysis.Evidence, at analysis.Place, contender string, cpu *analysis.Estimate) *analysis.Energy {
	var joules []float64
	for i := range e.Opt.Traces {
		t := &e.Opt.Traces[i]
		s := e.ValidSample(t.Key)
		if s == nil || analysis.GroupOf(s) != at.Group || s.Step != at.Step || s.Contender != contender {
			continue
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

// power is the mean of a sample's nodes together in the window (W), NaN where
// one was not recorded. The lab's nodes are one machine, so that it counts once.
func power(e *analysis.Evidence, t *analysis.Trace) float64 {
	total, nodes := 0.0, 0
	for i := range t.Nodes {
		watts := analysis.FiniteOnly(t.Nodes[i].Within(t.Nodes[i].Power))
		if len(watts) == 0 {
			return math.NaN()
		}
		sum := 0.0
		for _, w := range watts {
			sum += w
		}
		total += sum / float64(len(watts))
		nodes++
	}
	if e.OneMachine() && nodes > 0 {
		total /= float64(nodes)
	}
	return total
}
