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

// step returns the step of the plan with that id, or an empty step.
func (f *Facts) step(id string) result.Step {
	for _, s := range f.Run.Plan.Steps {
		if s.ID == id {
			return s
		}
	}
	return result.Step{}
}

// IsUDP says whether the step's workload sends UDP.
func (f *Facts) IsUDP(step string) bool {
	return strings.HasPrefix(f.step(step).Workload, "udp")
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

// IsHost says whether the contender is the host network, which nobody can choose. Another
// baseline, as an imported run may name, is a pod network.
func (f *Facts) IsHost(contender string) bool {
	return contender == f.Run.Baseline && contender == "host"
}

// KnowsOverhead says whether anything is known of the contender's encapsulation: the
// contenders of imported runs need not be in the catalogue.
func (f *Facts) KnowsOverhead(contender string) bool {
	for _, c := range f.Run.Contenders {
		if c.ID == contender {
			return c.Overhead > 0 || c.Datapath != ""
		}
	}
	return true
}

// Ceiling returns the highest goodput (bit/s) that the line rate allows a contender.
func (f *Facts) Ceiling(contender, step string) float64 {
	return float64(unit.Ceiling(f.Opt.LineRate, f.Opt.MTU, f.Overhead(contender), f.IsUDP(step)))
}

// Bandwidth returns what the plan lets a step send at most, bit/s of payload; 0: no limit.
func (f *Facts) Bandwidth(step string) float64 {
	s := f.step(step)
	return float64(s.Bandwidth())
}

// TickAliased is the code of the finding that a step's load has a multiple of the rate at
// which the kernel samples CPU time, so that its CPU figures are wrong.
const TickAliased = "cpu_tick_aliased"

// The environment keys of how the kernel accounts CPU time.
const (
	TickKey = "kernel.config.TICK_CPU_ACCOUNTING"
	HzKey   = "kernel.config.HZ"
)

// CPUClockKey is an environment key. Its value is IdleClock if busy CPU time was measured as
// elapsed time minus idle time. In runs without the key it is a sum of the kernel's ticks.
const (
	CPUClockKey = "cpu.clock"
	IdleClock   = "idle"
)

// CPUByTicks says whether CPU time is a sum of ticks by which the kernel samples it.
func (f *Facts) CPUByTicks() bool {
	return f.Run.Environment[TickKey] == "y" && f.Run.Environment[CPUClockKey] != IdleClock
}

// Aliased says whether the kernel sampled a step's CPU time in phase with its load.
func (f *Facts) Aliased(step string) bool {
	hz, err := strconv.ParseFloat(f.Run.Environment[HzKey], 64)
	rate := f.Pace(step)
	return f.CPUByTicks() && err == nil && hz > 0 && rate > 0 && math.Mod(rate, hz) == 0
}

// Direct returns the step with the same load as the given one from pod to pod, "" if
// there is none.
func (f *Facts) Direct(step string) string {
	load := f.step(step)
	for _, s := range f.Run.Plan.Steps {
		if s.Path == "pod" && s.Workload == load.Workload && reflect.DeepEqual(s.Params, load.Params) {
			return s.ID
		}
	}
	return ""
}

// NodesShareNote is the code of a sample's note that its cluster's nodes share a machine.
const NodesShareNote = "nodes_share_a_machine"

// OneMachine says whether nodes of the run share a machine, so that the kernel's counts
// for the machine are not those of one node.
func (e *Evidence) OneMachine() bool {
	return SharesMemory(e.Run.Arena) || slices.ContainsFunc(e.Valid, func(s *result.Sample) bool {
		return slices.ContainsFunc(s.Notes, func(r result.Reason) bool { return r.Code == NodesShareNote })
	})
}

// Pace returns the constant rate of a step's load (1/s), 0 if it has none.
func (f *Facts) Pace(step string) float64 {
	switch rate := f.step(step).Params[result.RateParam].(type) {
	case float64:
		return rate
	case int:
		return float64(rate)
	}
	return 0
}

// SharesMemory says whether all nodes of the arena share one machine and run no product's
// programs, so that memory says nothing about a contender.
func SharesMemory(arena string) bool { return arena == "lab" || arena == "microvm" }

// Datagrams says whether the step's goodput must be read together with its loss, even if
// the loss is unknown.
func (e *Evidence) Datagrams(at FigureKey) bool {
	return e.IsUDP(at.Step) || e.HasMetric(at, result.Loss)
}

// HasMetric says whether any contender has a figure of the metric at the place's step.
func (e *Evidence) HasMetric(at FigureKey, metric string) bool {
	return len(e.Figures[at.With(metric)]) > 0
}

// nodeNameKey begins the environment keys of the nodes' names in the cluster: node.name.1 is
// that of node1, on which clients run, node.name.2 that of node2.
const nodeNameKey = "node.name."

// NodeNames returns the names of the run's nodes in the cluster, those of clients and
// servers first; nil in a lab, or if the run did not record them.
func NodeNames(env result.Environment) []string {
	var names []string
	for i := 1; ; i++ {
		name := env[nodeNameKey+strconv.Itoa(i)]
		if name == "" {
			return names
		}
		names = append(names, name)
	}
}

// NodeOf returns the name of the node on which clients or servers run (role is client or
// server); the role if it is not known.
func (f *Facts) NodeOf(role string) string {
	names := NodeNames(f.Run.Environment)
	if i := slices.Index([]string{"client", "server"}, role); i >= 0 && i < len(names) {
		return names[i]
	}
	return role
}
