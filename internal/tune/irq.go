package tune

import (
	"fmt"
	"slices"
	"strconv"
)

// irq binds the interrupt of each queue to a core of its own.
var irq = Setting{
	Name:    "irq",
	Summary: "each queue's interrupt bound to a core of the interface's NUMA node; if it has no node, the queues take turns over all nodes",
	Why:     "an interrupt that stays on one core finds its data in that core's cache",
	Studies: []string{"2016", "kube-ovn"},
	Source:  "kernel Documentation/core-api/irq/irq-affinity.rst",
	Cost:    "under load these cores do little else",
	Avoid:   "while irqbalance runs, since it moves them again; with drivers that manage their interrupts themselves",
	Scope:   ScopeMachine,
	Plan: func(f *Facts, _ Params) (Proposal, error) {
		return f.each(func(n NIC) ([]Change, error) {
			if len(n.IRQs) == 0 {
				return nil, notApplicable("%s has no interrupts of its own", n.Name)
			}
			if len(f.Topology.CPUs) == 1 {
				return nil, notApplicable("there is only one CPU")
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

// irqCPUs returns the core for each queue's interrupts: the cores of the queue's node, in
// order.
func (f *Facts) irqCPUs(n NIC) map[int]int {
	nodes := f.queueNodes(n)
	cpus := map[int]int{}
	for _, q := range n.IRQs {
		node := nodes[q.Queue%len(nodes)]
		cores := f.Topology.CoresOn(node)
		if len(cores) == 0 { // the node has only second threads
			cores = f.Topology.On(node)
		}
		cpus[q.Queue] = cores[q.Queue/len(nodes)%len(cores)]
	}
	return cpus
}

// queueNodes returns the NUMA nodes over which the interface's queues take turns: its own
// node, or all nodes if the machine does not say which node that is.
func (f *Facts) queueNodes(n NIC) []int {
	nodes := f.Topology.Nodes()
	if slices.Contains(nodes, n.Node) {
		return []int{n.Node}
	}
	return nodes
}
