package tune

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/cpulist"
)

// serverThreads is the reader's: the server and the client are not cnibench's
// to configure.
var serverThreads = Setting{
	Name:    "server-threads",
	Summary: "one server worker a core, bound to it; the client's threads bound alike on its machine",
	Why:     "workers that stay on their core keep their cache and, with RFS, their packets",
	Studies: []string{"2016"},
	Source:  "nginx documentation, worker_cpu_affinity; taskset(1)",
	Cost:    "a worker cannot move away from a core that something else keeps busy",
	Avoid:   "on nodes that many pods share",
	Scope:   ScopeMachine,
	Plan: func(f *Facts, _ Params) (Proposal, error) {
		cores := f.Topology.Cores()
		list := cpulist.Format(cores)
		return Proposal{Advice: []string{
			fmt.Sprintf("nginx: worker_processes %d, bound to CPUs %s (%s)", len(cores), list, affinity(cores)),
			fmt.Sprintf("load generator: %d threads, taskset -c %s", len(cores), list),
		}}, nil
	},
}

// affinity is nginx's directive; it is auto where the CPUs are the first ones.
func affinity(cpus []int) string {
	for i, cpu := range cpus {
		if cpu != i {
			return fmt.Sprintf("taskset -c %s and worker_cpu_affinity auto", cpulist.Format(cpus))
		}
	}
	if len(cpus) > 8 {
		return "worker_cpu_affinity auto"
	}
	line := "worker_cpu_affinity"
	for i := range cpus {
		line += fmt.Sprintf(" %b", 1<<i)
	}
	return line
}
