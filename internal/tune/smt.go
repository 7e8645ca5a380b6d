package tune

import "slices"

// smt gives every core to one thread.
var smt = Setting{
	Name:    "smt",
	Summary: "second hardware threads off",
	Why:     "two threads of a core share its units: single-stream results stop depending on what the sibling does",
	Studies: []string{"2024 (tuned)"},
	Source:  "kernel Documentation/ABI/testing/sysfs-devices-system-cpu, smt/control",
	Cost:    "half of the CPUs; what was bound to them is moved, and interrupts do not move back by themselves",
	Avoid:   "on nodes that are short of CPU: total throughput drops",
	Scope:   ScopeMachine,
	Plan: func(f *Facts, _ Params) (Proposal, error) {
		control := file("/sys/devices/system/cpu/smt/control")
		state, err := f.read(control)
		if err != nil {
			return Proposal{}, err
		}
		switch state {
		case "on", "off":
			return Proposal{Changes: []Change{{control, state, "off"}}}, nil
		case "forceoff":
			return Proposal{}, notApplicable("second threads were switched off for good at boot")
		}
		return Proposal{}, notApplicable("the CPUs have no second threads that could be switched off (smt/control: %s)", state)
	},
	Effect: func(f Facts) *Facts {
		topology := *f.Topology
		topology.CPUs = slices.DeleteFunc(slices.Clone(topology.CPUs), func(c CPU) bool { return !c.First })
		f.Topology = &topology
		return &f
	},
}
