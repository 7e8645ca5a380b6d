package tune

import (
	"fmt"
	"slices"
	"strconv"
)

// irq gives every queue's interrupt a core of its own.
var irq = Setting{
	Name:    "irq",
	Summary: "interrupts of the interface's queues bound to cores of its NUMA node; where it has none, the first to the first core of every node",
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

// irqCPUs are the cores that a queue's interrupts are bound to, by queue: those
// of the queue's node in order.
func (f *Facts) irqCPUs(n NIC) map[int]int {
	nodes := f.queueNodes(n)
	cpus := map[int]int{}
	for _, q := range n.IRQs {
		node := nodes[q.Queue%len(nodes)]
		cores := f.Topology.CoresOn(node)
		if len(cores) == 0 { // second threads of another node's cores
			cores = f.Topology.On(node)
		}
		cpus[q.Queue] = cores[q.Queue/len(nodes)%len(cores)]
	}
	return cpus
}

// queueNodes are the NUMA nodes that the interface's queues take turns over:
// its own, or all where the machine does not say which that is.
func (f *Facts) queueNodes(n NIC) []int {
	nodes := f.Topology.Nodes()
	if slices.Contains(nodes, n.Node) {
		return []int{n.Node}
	}
	return nodes
}
