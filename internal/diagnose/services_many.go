package diagnose

import "fmt"

// manyServices is from how many Services on a list of them can be felt.
const manyServices = 1000

// slowService is the least time that a list must cost a new connection, s.
const slowService = 100e-6

// servicesMany: a new connection to a Service searches a long list.
func servicesMany() Cause {
	return Cause{
		ID: "services-many", Summary: "a new connection to a Service searches a long list of Services",
		Predicts: "new connections through a Service slow; established flows through it and connections to pods unharmed",
		Remedy:   "Let kube-proxy use nftables or IPVS, or replace it by eBPF.",
		Source:   "kubernetes.io/blog 2025-02-28 nftables-kube-proxy; k8s#135639",
		look: func(c *Case) Answer {
			a := Answer{}
			from, _ := c.ends(false)
			chain, rules := c.snapshot(from).longest(true)
			worst, kind, measured := 0.0, "", false
			hostConnect, ok1 := c.figure(Host, false, Connect, P50)
			hostRTT, ok2 := c.figure(Host, false, RTT, P50)
			for _, k := range []string{Service, PodPod} {
				connect, ok3 := c.figure(k, false, Connect, P50)
				rtt, ok4 := c.figure(k, false, RTT, P50)
				if ok1 && ok2 && ok3 && ok4 {
					measured = true
					if extra := connect - rtt - (hostConnect - hostRTT); extra > worst {
						worst, kind = extra, k
					}
				}
			}
			if !measured {
				return a
			}
			a.Excluded = fmt.Sprintf("a new connection takes %s longer than the round trip explains, among %d Services and %d rules", seconds(worst), c.Services, rules)
			if worst < slowService || c.Services < manyServices && rules < manyServices {
				return a
			}
			connect, _ := c.figure(kind, false, Connect, P50)
			rtt, _ := c.figure(kind, false, RTT, P50)
			x := Claim{State: Supported, Node: from, Explains: 0.6, Direction: c.direction(false),
				Text:     fmt.Sprintf("a new connection from %s takes %s longer than the round trip explains: it searches a long list of Services", from, seconds(worst)),
				Evidence: []Evidence{{"new connection", seconds(connect), from}, {"round trip of an established one", seconds(rtt), from}}}
			if c.Services > 0 {
				x.Evidence = append(x.Evidence, Evidence{"Services", fmt.Sprint(c.Services), "the cluster"})
			}
			if rules > 0 {
				x.Evidence = append(x.Evidence, Evidence{"rules", fmt.Sprint(rules), from + " " + chain})
			}
			a.Claims = append(a.Claims, x)
			return a
		},
	}
}
