package diagnose

import "fmt"

// nicErrors: a device counts errors.
func nicErrors() Cause {
	return Cause{
		ID: "nic-errors", Summary: "a device of the path counts errors",
		Predicts: "loss through that device, the nodes' own traffic too",
		Remedy:   "Look at the cable, the driver and the rings: ethtool -S, ethtool -g.",
		Source:   "/proc/net/dev errs; ethtool -S",
		look: func(c *Case) Answer {
			a := Answer{}
			for _, n := range c.nodes() {
				for _, d := range n.Devices {
					label := `device="` + d.Name + `"`
					bad, packets := 0.0, 0.0
					for _, p := range c.Paths {
						for _, probe := range p.Probes {
							for _, way := range []string{"receive", "transmit"} {
								bad += probe.Counters[n.Endpoint][series("node_network_"+way+"_errs", label)]
								packets += probe.Counters[n.Endpoint][series("node_network_"+way+"_packets", label)]
							}
						}
					}
					if packets > 0 {
						a.Excluded = "no device counted an error"
					}
					if bad < 5 || bad < 1e-4*packets || d.Name == "lo" {
						continue
					}
					a.Claims = append(a.Claims, Claim{State: Supported, Node: n.Endpoint, Device: d.Name, Explains: 0.5, underlay: true,
						Text:     fmt.Sprintf("%s of %s counted %s errors", d.Name, n.Endpoint, count(bad)),
						Evidence: []Evidence{{"errs", "+" + count(bad), n.Endpoint + " " + d.Name}},
						Next:     fmt.Sprintf("ethtool -S %s   on %s", d.Name, n.Endpoint)})
				}
			}
			return a
		},
	}
}
