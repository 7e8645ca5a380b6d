package diagnose

import "fmt"

// softnetDrops: a CPU's backlog of received packets overflows.
func softnetDrops() Cause {
	return Cause{
		ID: "softnet-drops", Summary: "a CPU's queue of received packets overflows",
		Predicts: "bulk sends again at high rates, small rates unharmed",
		Remedy:   "sysctl -w net.core.netdev_max_backlog=… and net.core.netdev_budget (cnibench tune plan sysctls)",
		Source:   "/proc/net/softnet_stat, Documentation/admin-guide/sysctl/net.rst",
		look: func(c *Case) Answer {
			a := Answer{}
			for _, n := range c.nodes() {
				dropped, ok := c.growthOver(n.Endpoint, "node_softnet_dropped")
				processed, _ := c.growthOver(n.Endpoint, "node_softnet_processed")
				if !ok {
					continue
				}
				a.Excluded = "no CPU's backlog overflowed"
				if dropped < 10 || dropped < 1e-4*processed {
					continue
				}
				share := 0.0
				for _, back := range directions {
					for _, kind := range []string{Host, PodPod} {
						lost, _ := c.lossShare(kind, back)
						share = max(share, lost)
					}
				}
				if share < minLoss && dropped < minLoss*processed {
					a.Excluded = fmt.Sprintf("a CPU's backlog overflowed %s times, and no path lost what it costs to feel", count(dropped))
					continue
				}
				x := Claim{State: Supported, Node: n.Endpoint, Explains: 0.3, underlay: true,
					Text:     fmt.Sprintf("%s dropped %s of %s received packets: the backlog of a CPU was full", n.Endpoint, count(dropped), count(processed)),
					Evidence: []Evidence{{"softnet_stat dropped", "+" + count(dropped), n.Endpoint}}}
				if v := n.Sysctls["net.core.netdev_max_backlog"]; v != "" {
					x.Evidence = append(x.Evidence, Evidence{"net.core.netdev_max_backlog", v, n.Endpoint})
				}
				a.Claims = append(a.Claims, x)
				if c.Arena == "lab" { // one machine has one count
					a.Claims[len(a.Claims)-1].Node = ""
					break
				}
			}
			return a
		},
	}
}
