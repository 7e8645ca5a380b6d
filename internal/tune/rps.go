package tune

import (
	"fmt"
	"slices"
)

// rps spreads the work on received packets over cores if the interface has too few queues
// for that.
var rps = Setting{
	Name:    "rps",
	Summary: "receive packet steering to all cores but those that take the interrupts",
	Why:     "with two queues, two cores did the softirq work of 36 threads",
	Studies: []string{"2016"},
	Source:  "kernel Documentation/networking/scaling.rst, RPS",
	Cost:    "cores interrupt each other: more CPU for each packet, and some latency at low load",
	Avoid:   "on interfaces with a queue for every core: the hardware (RSS) spreads the work",
	Scope:   ScopeNamespace,
	Plan: func(f *Facts, _ Params) (Proposal, error) {
		return f.each(func(n NIC) ([]Change, error) {
			cpus, err := f.rpsCPUs(n)
			if err != nil {
				return nil, err
			}
			var changes []Change
			for q := range n.RX {
				path := fmt.Sprintf("%s%s/queues/rx-%d/rps_cpus", netClass, n.Name, q)
				now, err := f.read(mask(path))
				if err != nil {
					return nil, err
				}
				changes = append(changes, Change{mask(path), now, FormatMask(cpus, now)})
			}
			return changes, nil
		})
	},
}

// rpsCPUs returns the cores over which received packets are spread.
func (f *Facts) rpsCPUs(n NIC) ([]int, error) {
	cores := f.Topology.Cores()
	if len(f.Topology.CPUs) == 1 {
		return nil, notApplicable("there is only one CPU")
	}
	if n.Kind == kindBridge || n.Kind == kindVeth {
		return nil, notApplicable("%s gets no packets of other machines", n.Name)
	}
	if n.Driver != "" && n.RX >= len(cores) {
		return nil, notApplicable("%s has a receive queue for each of the %d cores: its hardware spreads the load (RSS)", n.Name, len(cores))
	}
	for _, cpu := range f.irqCPUs(n) {
		cores = slices.DeleteFunc(cores, func(c int) bool { return c == cpu })
	}
	if len(cores) == 0 {
		return nil, notApplicable("every core takes interrupts of %s", n.Name)
	}
	return cores, nil
}
