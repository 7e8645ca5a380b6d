package tune

import (
	"fmt"
	"slices"
	"strconv"
)

// irq gives every queue's interrupt a core of its own.
var irq = Setting{
	Name:    "irq",
	Summary: "interrupts of the interface's queues bound, the first to the first core of every NUMA node",
	Why:     "an interrupt that stays on one core finds its data in that core's cache",
	Studies: []string{"2016", "kube-ovn"},
	Source:  "kernel Documentation/core-api/irq/irq-affinity.rst",
	Cost:    "these cores do little else under load",
	Avoid:   "while irqbalance runs, which moves them again; and on drivers that manage their interrupts themselves",
	Scope:   ScopeMachine,
	Plan: func(f *Facts, _ Params) (Proposal, error) {
		return f.each(func(n NIC) ([]Change, error) {
			if len(n.IRQs) == 0 {
				return nil, notApplicable("%s has no interrupts of its own", n.Name)
			}
			if len(f.Topology.CPUs) == 1 {
				return nil, notApplicable("there is one CPU only")
			}
			cpus := f.irqCPUs(n)
			var changes []Change
			for _, q := range n.IRQs {
				c, err := f.change(file(fmt.Sprintf("/proc/irq/%d/smp_affinity_list", q.Number)), strconv.Itoa(cpus[q.Queue]))
				if err != nil {
					return nil, err
				}
				changes = append(changes, c)
			}
			return changes, nil
		})
	},
}

// irqCPUs are the cores that a queue's interrupts are bound to, by queue: the
// NUMA nodes take turns, each with its cores in order. It begins with the
// interface's own node where the machine says which that is.
func (f *Facts) irqCPUs(n NIC) map[int]int {
	nodes := f.Topology.Nodes()
	own := max(slices.Index(nodes, n.Node), 0)
	cpus := map[int]int{}
	for _, q := range n.IRQs {
		cores := f.Topology.CoresOn(nodes[(own+q.Queue)%len(nodes)])
		cpus[q.Queue] = cores[q.Queue/len(nodes)%len(cores)]
	}
	return cpus
}
