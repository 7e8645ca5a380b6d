package analysis

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// Efficiency is what the traffic of one contender cost at one step, over the
// valid rounds.
type Efficiency struct {
	Part      string   `json:"part,omitempty"` // as of a Result
	Contender string   `json:"contender"`
	Kernel    string   `json:"kernel"`
	Underlay  string   `json:"underlay"`
	Step      string   `json:"step"`
	Path      string   `json:"path"`
	Goodput   Estimate `json:"goodput"` // bit/s
	// CPUPerGbit is CPU-seconds per Gbit, client and server together, every
	// mode but idle: softirq, where a pod network does most of its work, is in.
	CPUPerGbit *Estimate `json:"cpu_per_gbit"`
	// Published is by the 2024 study's formula: the mean of client and server
	// instead of their sum, the greatest of the rounds by the best goodput of
	// the rounds; CPU-seconds per Gbit.
	Published *float64 `json:"cpu_per_gbit_published"`
	// UserSystem is user and system only, the mean of client and server: all
	// that some published results hold, and a lower bound, by which nobody is
	// ranked.
	UserSystem *Estimate `json:"cpu_per_gbit_user_system,omitempty"`
	// MemoryOverhead is bytes over the baseline, at this step.
	MemoryOverhead *Estimate `json:"memory_overhead"`
	Frontier       bool      `json:"frontier"` // by medians, no other contender of the step but the baseline has more goodput for less CPU
	Cluster        int       `json:"cluster"`  // from 1; contenders of a number resemble each other; 0: the baseline, or no clusters were found
	Energy         *Energy   `json:"energy"`   // null where it is neither measured nor can be estimated
}

// Estimate is a median with its interval, which is nil with too few rounds.
type Estimate struct {
	Median float64   `json:"median"`
	CI     *Interval `json:"ci"`
}

// Energy is what moving data took.
type Energy struct {
	JoulesPerGB float64 `json:"joules_per_gb"` // decimal gigabyte, client and server
	Measured    bool    `json:"measured"`      // else an estimate
	Basis       string  `json:"basis"`         // where the figure comes from, in words
}

// efficiencies are in the order of results: group, step, contender. Every step
// that has goodput has them.
func (e *evidence) efficiencies() []Efficiency {
	var list []Efficiency
	for _, at := range e.places {
		if at.Metric != "goodput" {
			continue
		}
		var here []Efficiency
		for _, contender := range e.inOrder(e.figures[at]) {
			here = append(here, e.efficiency(at, contender))
		}
		e.markFrontier(at, here)
		e.markClusters(at, here)
		list = append(list, here...)
	}
	return list
}

func (e *evidence) efficiency(at place, contender string) Efficiency {
	beside := func(metric string) series { return e.figures[place{at.group, at.Step, metric}][contender] }
	goodput := e.figures[at][contender]
	list := Efficiency{
		Contender: contender, Kernel: at.Kernel, Underlay: at.Underlay, Step: at.Step, Path: e.paths[at.Step],
		Goodput:        *e.estimate(goodput),
		CPUPerGbit:     e.estimate(beside("cpu_per_gbit")),
		UserSystem:     e.estimate(beside("cpu_per_gbit_user_system")),
		Published:      published(goodput, beside("cpu_per_gbit_published")),
		MemoryOverhead: e.estimate(e.overBaseline(place{at.group, at.Step, "memory_used"}, contender)),
	}
	if e.unpaired() && list.MemoryOverhead != nil {
		list.MemoryOverhead.CI = nil // it would leave the baseline's own noise out
	}
	list.Energy = e.energy(at, contender, list.CPUPerGbit)
	return list
}

// estimate is nil of no values.
func (e *evidence) estimate(s series) *Estimate {
	if len(s) == 0 {
		return nil
	}
	return &Estimate{Median: stat.Median(s.values()), CI: interval(s.values(), e.opt.Confidence)}
}

// overBaseline is what a contender has more of than the baseline of the same
// round, or of its middle round where rounds are no pairs; nothing for the
// baseline itself.
func (e *evidence) overBaseline(at place, contender string) series {
	over := series{}
	if contender == e.run.Baseline {
		return over
	}
	base := e.figures[at][e.run.Baseline]
	if len(base) == 0 { // hosts have no Services: as the study did, the same load without
		base = e.figures[place{at.group, e.direct(at.Step), at.Metric}][e.run.Baseline]
	}
	for round, v := range e.figures[at][contender] {
		if base, beside := e.baseOfRound(base, round); beside {
			over[round] = v - base
		}
	}
	return over
}

// direct is the step with the load of the given one from pod to pod, "" where
// there is none.
func (e *evidence) direct(step string) string {
	steps := e.run.Plan.Steps
	i := slices.IndexFunc(steps, func(s result.Step) bool { return s.ID == step })
	if i < 0 {
		return ""
	}
	j := slices.IndexFunc(steps, func(s result.Step) bool {
		return s.Path == "pod" && s.Workload == steps[i].Workload && reflect.DeepEqual(s.Params, steps[i].Params)
	})
	if j < 0 {
		return ""
	}
	return steps[j].ID
}

// published is the 2024 study's figure: the most CPU of all rounds over the
// best goodput of all rounds, which need not be the same round. perGbit is
// the CPU by that study's formula in each round, by the round's own goodput.
func published(goodput, perGbit series) *float64 {
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
func (e *evidence) markFrontier(at place, here []Efficiency) {
	candidate := func(x *Efficiency) bool {
		return x.Contender != e.run.Baseline && x.CPUPerGbit != nil && !e.lossy(at, x.Contender)
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
func (e *evidence) energy(at place, contender string, cpu *Estimate) *Energy {
	var joules []float64
	for i := range e.opt.Traces {
		t := &e.opt.Traces[i]
		s := e.sampleOf(t.Key)
		if s == nil || groupOf(s) != at.group || s.Step != at.Step || s.Contender != contender {
			continue
		}
		if watts := e.power(t); watts > 0 && s.Metrics["goodput"] > 0 {
			joules = append(joules, watts/(s.Metrics["goodput"]/1e9/gbitPerGB))
		}
	}
	switch {
	case len(joules) > 0:
		return &Energy{JoulesPerGB: stat.Median(joules), Measured: true,
			Basis: "energy of the nodes' CPU packages (RAPL), idle power included, median of the rounds"}
	case e.opt.WattsPerCore > 0 && cpu != nil:
		return &Energy{JoulesPerGB: e.opt.WattsPerCore * cpu.Median * gbitPerGB,
			Basis: fmt.Sprintf("estimate: %g W for each busy core, as given; nothing was measured", e.opt.WattsPerCore)}
	}
	return nil
}

// power is the mean of a sample's nodes together in the window (W), NaN where
// one was not recorded. The lab's nodes are one machine, so that it counts once.
func (e *evidence) power(t *Trace) float64 {
	total, nodes := 0.0, 0
	for i := range t.Nodes {
		watts := finiteOnly(t.Nodes[i].within(t.Nodes[i].Power))
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
	if e.oneMachine() && nodes > 0 {
		total /= float64(nodes)
	}
	return total
}

// oneMachine says that all nodes of the run share one, so that what the kernel
// counts for the machine is not a node's.
func (e *evidence) oneMachine() bool { return sharedMemory(e.run.Arena) }
