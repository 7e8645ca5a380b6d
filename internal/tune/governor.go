package tune

import (
	"fmt"
	"strings"
)

// governor selects a governor that keeps CPUs from slowing down between packets.
var governor = Setting{
	Name:    "governor",
	Summary: "CPU frequency governor",
	Why:     "a core that was slowed down answers the next packet late",
	Studies: []string{"2024", "kube-ovn"},
	Source:  "kernel Documentation/admin-guide/pm/cpufreq.rst",
	Cost:    "power and heat; on some machines less boost for a single busy core",
	Avoid:   "on battery, and if power is what you pay for",
	Scope:   ScopeMachine,
	Params:  []Param{{"value", "performance", "governor"}},
	Plan: func(f *Facts, p Params) (Proposal, error) {
		var changes []Change
		for _, cpu := range f.Topology.CPUs {
			dir := fmt.Sprintf("/sys/devices/system/cpu/cpu%d/cpufreq/", cpu.ID)
			if !f.has(dir + "scaling_governor") {
				continue
			}
			offered, err := f.read(file(dir + "scaling_available_governors"))
			if err == nil && !strings.Contains(" "+offered+" ", " "+p["value"]+" ") {
				return Proposal{}, notApplicable("the CPU driver has no governor %s, only: %s", p["value"], offered)
			}
			c, err := f.change(file(dir+"scaling_governor"), p["value"])
			if err != nil {
				return Proposal{}, err
			}
			changes = append(changes, c)
		}
		if len(changes) == 0 {
			return Proposal{}, notApplicable("no CPU has a frequency governor: on a virtual machine the host decides")
		}
		return Proposal{Changes: changes}, nil
	},
}
