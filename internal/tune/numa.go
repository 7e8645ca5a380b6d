package tune

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/cpulist"
)

// numa is the reader's: where programs run is their scheduler's to decide.
var numa = Setting{
	Name:    "numa",
	Summary: "client and server on the NUMA node that the interface is attached to",
	Why:     "memory of the other node is farther away: single-stream results depend on the luck of placement",
	Studies: []string{"2024 (tuned)"},
	Source:  "numactl(8); kubelet's topology manager, policy single-numa-node",
	Cost:    "the other node's cores and memory are left out",
	Avoid:   "when the load needs all cores",
	Scope:   ScopeMachine,
	Plan: func(f *Facts, _ Params) (Proposal, error) {
		nodes := f.Topology.Nodes()
		if len(nodes) < 2 {
			return Proposal{}, notApplicable("all CPUs are of one NUMA node")
		}
		nics, err := f.nics()
		if err != nil {
			return Proposal{}, err
		}
		var advice []string
		for _, n := range nics {
			if n.Node < 0 {
				advice = append(advice, fmt.Sprintf("%s does not say which NUMA node it is attached to: measure on each (numactl --cpunodebind=N --membind=N)", n.Name))
				continue
			}
			cpus := cpulist.Format(f.Topology.On(n.Node))
			advice = append(advice, fmt.Sprintf("%s is attached to node %d, CPUs %s: numactl --cpunodebind=%d --membind=%d COMMAND; pods: Guaranteed, with the static CPU manager and topologyManagerPolicy single-numa-node", n.Name, n.Node, cpus, n.Node, n.Node))
		}
		return Proposal{Advice: advice}, nil
	},
}
