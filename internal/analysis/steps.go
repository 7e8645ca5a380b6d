package analysis

import (
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// Facts are the facts of a run that need no sample: its description, its plan and the options.
type Facts struct {
	Run *result.Run
	Opt Options
}

// IsUDP says whether the step's workload sends UDP.
func (f *Facts) IsUDP(step string) bool {
	return slices.ContainsFunc(f.Run.Plan.Steps, func(s result.Step) bool {
		return s.ID == step && strings.HasPrefix(s.Workload, "udp")
	})
}

// Overhead returns how many bytes encapsulation adds to a contender's packets.
func (f *Facts) Overhead(contender string) int {
	for _, c := range f.Run.Contenders {
		if c.ID == contender {
			return int(c.Overhead)
		}
	}
	return 0
}

// Ceiling returns the highest goodput (bit/s) that the line rate allows a contender.
func (f *Facts) Ceiling(contender, step string) float64 {
	return float64(unit.Ceiling(f.Opt.LineRate, f.Opt.MTU, f.Overhead(contender), f.IsUDP(step)))
}

// Bandwidth returns what the plan lets a step send at most, bit/s of payload; 0: no limit.
func (f *Facts) Bandwidth(step string) float64 {
	for _, s := range f.Run.Plan.Steps {
		if s.ID == step {
			return float64(s.Bandwidth())
		}
	}
	return 0
}

// TickAliased is the code of the finding that a step's load has a multiple of the rate at
// which the kernel samples CPU time, so that its CPU figures are wrong.
const TickAliased = "cpu_tick_aliased"

// The environment keys of how the kernel accounts CPU time.
const (
	TickKey = "kernel.config.TICK_CPU_ACCOUNTING"
	HzKey   = "kernel.config.HZ"
)

// Aliased says whether the kernel sampled a step's CPU time in phase with its load.
func (f *Facts) Aliased(step string) bool {
	hz, err := strconv.ParseFloat(f.Run.Environment[HzKey], 64)
	rate := f.Pace(step)
	return f.Run.Environment[TickKey] == "y" && err == nil && hz > 0 && rate > 0 && math.Mod(rate, hz) == 0
}

// Direct returns the step with the same load as the given one from pod to pod, "" if
// there is none.
func (f *Facts) Direct(step string) string {
	steps := f.Run.Plan.Steps
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

// NodesShareNote is the code of a sample's note that its cluster's nodes share a machine.
const NodesShareNote = "nodes_share_a_machine"

// OneMachine says whether nodes of the run share a machine, so that the kernel's counts
// for the machine are not those of one node.
func (e *Evidence) OneMachine() bool {
	return SharedMemory(e.Run.Arena) || slices.ContainsFunc(e.Valid, func(s *result.Sample) bool {
		return slices.ContainsFunc(s.Notes, func(r result.Reason) bool { return r.Code == NodesShareNote })
	})
}

// Pace returns the constant rate of a step's load (1/s), 0 if it has none.
func (f *Facts) Pace(step string) float64 {
	i := slices.IndexFunc(f.Run.Plan.Steps, func(s result.Step) bool { return s.ID == step })
	if i < 0 {
		return 0
	}
	switch rate := f.Run.Plan.Steps[i].Params["rate"].(type) {
	case float64:
		return rate
	case int:
		return float64(rate)
	}
	return 0
}

// SharedMemory says whether all nodes of the arena share one machine and run no product's
// programs, so that memory says nothing about a contender.
func SharedMemory(arena string) bool { return arena == "lab" || arena == "microvm" }

// Datagrams says whether the step's goodput must be read together with its loss, even if
// the loss is unknown.
func (e *Evidence) Datagrams(at Place) bool { return e.IsUDP(at.Step) || e.HasMetric(at, result.Loss) }

// HasMetric says whether any contender has a figure of the metric at the place's step.
func (e *Evidence) HasMetric(at Place, metric string) bool {
	return len(e.Figures[at.With(metric)]) > 0
}
