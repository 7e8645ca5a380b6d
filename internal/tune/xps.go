package tune

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
)

// xps lets the CPUs of a NUMA node send through queues of their own.
var xps = Setting{
	Name:    "xps",
	Summary: "transmit packet steering: every NUMA node's threads send through their own queues",
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

// xpsCPUs are the threads that send through each transmit queue. The queues
// take turns over the nodes as interrupts do; the cores of a node take turns
// over its queues, with their second threads.
func (f *Facts) xpsCPUs(n NIC) [][]int {
	nodes := f.Topology.Nodes()
	queues := make([][]int, n.TX)
	turn := map[int]int{}
	for _, first := range []bool{true, false} {
		clear(turn) // second threads come in the order of their cores
		for _, cpu := range f.Topology.CPUs {
			if cpu.First != first {
				continue
			}
			node := slices.Index(nodes, cpu.Node)
			var own []int
			for q := range n.TX {
				if q%len(nodes) == node%n.TX {
					own = append(own, q)
				}
			}
			q := own[turn[node]%len(own)]
			turn[node]++
			queues[q] = append(queues[q], cpu.ID)
		}
	}
	return queues
}
