package diagnose

import "fmt"

// cpuStarved: a node has no CPU time left before anything is sent.
func cpuStarved() Cause {
	return Cause{
		ID: "cpu-starved", Summary: "a node has no idle CPU time",
		Predicts: "everything of that node slow, the nodes' own traffic too; long waits for a CPU",
		Remedy:   "Take work off that node, or give it more CPUs.",
		Source:   "/proc/stat, /proc/pressure/cpu",
		look: func(c *Case) Answer {
			a := Answer{}
			quiet := c.path(Quiet, false)
			if quiet == nil {
				return a
			}
			probe := quiet.Probes[Idle]
			for _, n := range c.nodes() {
				idle, ok := probe.cpuShare(n.Endpoint, "idle", "iowait")
				if !ok {
					continue
				}
				a.Excluded = fmt.Sprintf("%s of %s's CPU time is idle before anything is sent", percent(idle), n.Endpoint)
				if 1-idle < busyNode {
					continue
				}
				if !c.suffers() {
					a.Excluded = fmt.Sprintf("%s is busy (%s of its CPU time is idle), and its pods are not slower for it", n.Endpoint, percent(idle))
					continue
				}
				x := Claim{State: Supported, Node: n.Endpoint, Explains: 0.3, underlay: true,
					Text:     fmt.Sprintf("%s is busy with other work: %s of its CPU time is idle before anything is sent", n.Endpoint, percent(idle)),
					Evidence: []Evidence{{"idle", percent(idle), n.Endpoint}}}
				if waited, ok := probe.grown(n.Endpoint, "node_pressure_cpu_waiting_seconds"); ok && probe.Seconds > 0 {
					x.Evidence = append(x.Evidence, Evidence{"PSI cpu some", percent(waited / probe.Seconds), n.Endpoint})
				}
				a.Claims = append(a.Claims, x)
				if c.Arena == "lab" { // one machine
					break
				}
			}
			return a
		},
	}
}
