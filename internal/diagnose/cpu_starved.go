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
				waits := c.waits(n.Endpoint)
				if len(waits) == 0 {
					a.Excluded = fmt.Sprintf("%s is busy (%s of its CPU time is idle), and neither its own traffic nor that of two pods of it is slow", n.Endpoint, percent(idle))
					continue
				}
				x := Claim{State: Supported, Node: n.Endpoint, Explains: 0.3, underlay: true,
					Text:     fmt.Sprintf("%s is busy with other work: %s of its CPU time is idle before anything is sent", n.Endpoint, percent(idle)),
					Evidence: append([]Evidence{{"idle", percent(idle), n.Endpoint}}, waits...)}
				if waited, ok := probe.growth(n.Endpoint, "node_pressure_cpu_waiting_seconds"); ok && probe.Seconds > 0 {
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

// slowHost is a round trip between nodes, or on one, from which on they are slow themselves, s.
const slowHost = 500e-6

// waits returns what is slow without the pod network: the node's own traffic, or that of two
// pods of it. A busy node alone makes nothing slow, and a fault of the pod network is not its.
func (c *Case) waits(node string) (e []Evidence) {
	for _, back := range directions {
		if rtt, ok := c.figure(Host, back, RTT, P50); ok && rtt > slowHost {
			e = append(e, Evidence{"round trip between the nodes", seconds(rtt), c.direction(back)})
		}
		if own, ok := c.figure(Host, back, Bulk, Goodput); ok && c.MaxRate > 0 && own < shortOfCap*c.MaxRate {
			e = append(e, Evidence{"goodput between the nodes", bitrate(own) + " of " + bitrate(c.MaxRate), c.direction(back)})
		}
	}
	if p := c.path(SameNode, false); p != nil && c.nodeOf(p.From) == node {
		if rtt, ok := c.figure(SameNode, false, RTT, P50); ok && rtt > slowHost {
			e = append(e, Evidence{"round trip between two pods of the node", seconds(rtt), node})
		}
	}
	return e
}
