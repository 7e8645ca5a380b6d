package analysis

import (
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// This file says what traffic costs each contender: CPU time and memory.

// Efficiency is the cost of the traffic of one contender at one step, over the valid
// rounds.
type Efficiency struct {
	Contender string   `json:"contender"`
	Kernel    string   `json:"kernel"`
	Underlay  string   `json:"underlay"`
	Step      string   `json:"step"`
	Path      string   `json:"path"`
	Goodput   Estimate `json:"goodput"` // bit/s
	// CPUPerGbit is CPU-seconds per Gbit of client and server together, in every mode
	// that works: with softirq, where a pod network does most of its work.
	CPUPerGbit *Estimate `json:"cpu_per_gbit"`
	// Published is CPU-seconds per Gbit by the 2024 study's formula: the mean of client
	// and server, the largest of all rounds, divided by the best goodput of all rounds.
	Published *float64 `json:"cpu_per_gbit_published"`
	// UserSystem is CPU-seconds per Gbit in the modes user and system only, the mean of
	// client and server. Some published results have only these. It is a lower bound,
	// and contenders are not ranked by it.
	UserSystem *Estimate `json:"cpu_per_gbit_user_system,omitempty"`
	// MemoryOverhead is the memory above the baseline's at this step, bytes.
	MemoryOverhead *Estimate `json:"memory_overhead"`
	Frontier       bool      `json:"frontier"` // by medians, no other contender of the step but the baseline has more goodput for less CPU
}

// Estimate is a median with its interval, which is nil with too few rounds.
type Estimate struct {
	Median float64   `json:"median"`
	CI     *Interval `json:"ci"`
}

// Efficiencies returns the cost of traffic at every step that has goodput, ordered by
// group, step and contender.
func Efficiencies(e *Evidence) []Efficiency {
	var list []Efficiency
	for _, at := range e.Keys {
		if at.Metric != result.Goodput {
			continue
		}
		var here []Efficiency
		for _, contender := range e.OrderContenders(e.Figures[at]) {
			here = append(here, efficiency(e, at, contender))
		}
		markFrontier(e, at, here)
		list = append(list, here...)
	}
	return list
}

func efficiency(e *Evidence, at FigureKey, contender string) Efficiency {
	series := func(metric string) Series {
		return e.Figures[at.With(metric)][contender]
	}
	goodput := e.Figures[at][contender]
	list := Efficiency{
		Contender: contender, Kernel: at.Kernel, Underlay: at.Underlay, Step: at.Step, Path: e.Paths[at.Step],
		Goodput:        *estimate(e, goodput),
		CPUPerGbit:     estimate(e, series(result.CPUPerGbit)),
		UserSystem:     estimate(e, series(result.CPUPerGbitUserSystem)),
		Published:      maxCPUPerGbit(goodput, series(result.CPUPerGbitPublished)),
		MemoryOverhead: estimate(e, overBaseline(e, at.With(result.MemoryUsed), contender)),
	}
	if e.Unpaired() && list.MemoryOverhead != nil {
		list.MemoryOverhead.CI = nil // the interval would not contain the baseline's noise
	}
	return list
}

// estimate returns the median of s with its interval, or nil if s is empty.
func estimate(e *Evidence, s Series) *Estimate {
	if len(s) == 0 {
		return nil
	}
	return &Estimate{Median: stat.Median(s.Values()), CI: MedianInterval(s.Values(), e.Opt.Confidence)}
}

// overBaseline returns by how much a contender's values exceed the baseline's value of the
// same round; if rounds are unpaired, the baseline's median. It is empty for the baseline.
func overBaseline(e *Evidence, at FigureKey, contender string) Series {
	over := Series{}
	if contender == e.Run.Baseline {
		return over
	}
	base := e.Figures[at][e.Run.Baseline]
	if len(base) == 0 { // the baseline has no Services: as in the 2024 study, the same load from pod to pod stands in
		base = e.Figures[FigureKey{ComparableSet: at.ComparableSet, Step: e.Direct(at.Step), Metric: at.Metric}][e.Run.Baseline]
	}
	for round, v := range e.Figures[at][contender] {
		if base, measured := e.BaseOfRound(base, round); measured {
			over[round] = v - base
		}
	}
	return over
}

// maxCPUPerGbit returns the 2024 study's figure: the most CPU time of all rounds divided by the
// best goodput of all rounds, which may be another round. perGbit is each round's CPU time
// by that study's formula, divided by the goodput of the same round.
func maxCPUPerGbit(goodput, perGbit Series) *float64 {
	maximum, best := 0.0, 0.0
	for round, v := range perGbit {
		maximum = max(maximum, v*goodput[round])
	}
	for _, v := range goodput {
		best = max(best, v)
	}
	if maximum <= 0 || best <= 0 {
		return nil
	}
	figure := maximum / best
	return &figure
}

// markFrontier sets Frontier for each contender unless another has both more goodput and
// less CPU per Gbit. It compares medians, so a contender on the frontier and its neighbour
// may not differ. The baseline is ignored, because it is no pod network to choose. CPU time
// of user and system only is ignored, too: a lower bound does not show which contender
// costs more.
func markFrontier(e *Evidence, at FigureKey, here []Efficiency) {
	candidate := func(x *Efficiency) bool {
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
