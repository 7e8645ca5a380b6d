package tune

import (
	"errors"
	"fmt"
	"syscall"
)

// xps lets the CPUs of a NUMA node send through queues of their own.
var xps = Setting{
	Name:    "xps",
	Summary: "transmit packet steering: threads send through the queues whose interrupts their NUMA node takes; those of a node without, through all",
	Why:     "less contention for a queue's lock, and its interrupts come back to the node that sent",
	Studies: []string{"2016"},
	Source:  "kernel Documentation/networking/scaling.rst, XPS",
	Cost:    "a node with few queues cannot borrow another's",
	Avoid:   "on interfaces with a queue for every CPU, whose driver sets it",
	Scope:   ScopeNamespace,
	Plan: func(f *Facts, _ Params) (Proposal, error) {
		return f.each(func(n NIC) ([]Change, error) {
			if n.TX < 2 {
				return nil, notApplicable("%s has one transmit queue: there is nothing to choose", n.Name)
			}
			if n.TX >= len(f.Topology.CPUs) {
				return nil, notApplicable("%s has a transmit queue for each of the %d CPUs", n.Name, len(f.Topology.CPUs))
			}
			var changes []Change
			for q, cpus := range f.xpsCPUs(n) {
				path := fmt.Sprintf("%s%s/queues/tx-%d/xps_cpus", netClass, n.Name, q)
				now, err := f.read(mask(path))
				if errors.Is(err, syscall.EOPNOTSUPP) {
					return nil, notApplicable("%s does not let its transmit queues be chosen", n.Name)
				}
				if err != nil {
					return nil, err
				}
				changes = append(changes, Change{mask(path), now, FormatMask(cpus, now)})
			}
			return changes, nil
		})
	},
}

// xpsCPUs are the threads that send through each transmit queue. A queue is of
// the node that its interrupts are bound to. The cores of a node take turns
// over its queues, or where it has none over all, with their second threads.
func (f *Facts) xpsCPUs(n NIC) [][]int {
	nodes := f.queueNodes(n)
	var all []int
	own := map[int][]int{} // queues, by node
	for q := range n.TX {
		all = append(all, q)
		own[nodes[q%len(nodes)]] = append(own[nodes[q%len(nodes)]], q)
	}
	cpus := make([][]int, n.TX)
	turn := map[int]int{}
	for _, first := range []bool{true, false} {
		clear(turn) // second threads come in the order of their cores
		for _, cpu := range f.Topology.CPUs {
			if cpu.First != first {
				continue
			}
			queues := own[cpu.Node]
			if len(queues) == 0 {
				queues = all
			}
			q := queues[turn[cpu.Node]%len(queues)]
			turn[cpu.Node]++
			cpus[q] = append(cpus[q], cpu.ID)
		}
	}
	return cpus
}
