package tune

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/cnibench/cnibench/internal/linux"
)

// smt switches second hardware threads off.
var smt = Setting{
	Name:    "smt",
	Summary: "second hardware threads off",
	Why:     "two threads of a core share its units: single-stream results stop depending on what the sibling does",
	Studies: []string{"2024 (tuned)"},
	Source:  "kernel Documentation/ABI/testing/sysfs-devices-system-cpu, smt/control",
	Cost:    "half of the CPUs; the kernel moves what was bound to them, and interrupts do not move back by themselves",
	Avoid:   "on nodes that are short of CPU: total throughput drops",
	Scope:   ScopeMachine,
	Plan: func(f *Facts, _ Params) (Proposal, error) {
		control := file("/sys/devices/system/cpu/smt/control")
		state, err := f.read(control)
		if err != nil {
			return Proposal{}, err
		}
		switch state {
		case "on":
			offline, err := presentOffline(f)
			if err != nil {
				return Proposal{}, err
			}
			if len(offline) > 0 {
				return Proposal{}, &NotApplicable{
					Reason: "CPUs " + linux.FormatCPUs(offline) + " are offline, and revert would set them online too",
					Remedy: "set them online first, or switch second threads off at boot (nosmt)",
				}
			}
			fallthrough
		case "off":
			return Proposal{Changes: []Change{{control, state, "off"}}}, nil
		case "forceoff":
			return Proposal{}, notApplicable("second threads were switched off at boot and cannot be switched on")
		}
		return Proposal{}, notApplicable("the CPUs have no second threads that could be switched off (smt/control: %s)", state)
	},
}

// presentOffline returns the CPUs that the machine has and that are offline. The kernel's
// own list of offline CPUs also names CPUs that could be added while it runs.
func presentOffline(f *Facts) ([]int, error) {
	present, err := readCPUList(f.m.Files, "/sys/devices/system/cpu/present")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &unreadable{err}
	}
	online := f.Topology.pick(func(CPU) bool { return true })
	return slices.DeleteFunc(present, func(cpu int) bool { return slices.Contains(online, cpu) }), nil
}
