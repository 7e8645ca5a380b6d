package tune

import (
	"errors"
	"fmt"
	"syscall"
)

// xps gives the CPUs of each NUMA node transmit queues of their own.
var xps = Setting{
	Name:    "xps",
	Summary: "transmit packet steering: threads send through the queues whose interrupts go to their NUMA node; threads of a node without queues use all",
	Why:     "less contention for a queue's lock, and its interrupts come back to the node that sent",
	Studies: []string{"2016"},
	Source:  "kernel Documentation/networking/scaling.rst, XPS",
	Cost:    "a node with few queues cannot borrow another's",
	Avoid:   "on interfaces with a queue for every CPU, whose driver sets it",
	Scope:   ScopeNamespace,
	Plan: func(f *Facts, _ Params) (Proposal, error) {
		return f.each(func(n NIC) ([]Change, error) {
			if n.TX < 2 {
				return nil, notApplicable("%s has only one transmit queue", n.Name)
			}
			if n.TX >= len(f.Topology.CPUs) {
				return nil, notApplicable("%s has a transmit queue for each of the %d CPUs", n.Name, len(f.Topology.CPUs))
			}
			var changes []Change
			for q, cpus := range f.xpsCPUs(n) {
				path := fmt.Sprintf("%s%s/queues/tx-%d/xps_cpus", netClass, n.Name, q)
				now, err := f.read(mask(path))
				if errors.Is(err, syscall.EOPNOTSUPP) {
					return nil, notApplicable("%s has no setting for its transmit queues", n.Name)
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

// xpsCPUs returns the threads that send through each transmit queue. A queue belongs to the
// node that its interrupts are bound to. The cores of a node take turns over its queues, or
// over all queues if it has none. Then their second threads do the same.
func (f *Facts) xpsCPUs(n NIC) [][]int {
	nodes := f.queueNodes(n)
	var all []int
	own := map[int][]int{} // queues by node
	for q := range n.TX {
		all = append(all, q)
		own[nodes[q%len(nodes)]] = append(own[nodes[q%len(nodes)]], q)
	}
	cpus := make([][]int, n.TX)
	turn := map[int]int{}
	for _, first := range []bool{true, false} {
		clear(turn) // second threads follow the order of their cores
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
