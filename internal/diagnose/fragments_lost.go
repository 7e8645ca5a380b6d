package diagnose

// fragmentsLost: packets are cut up and not all of their pieces arrive.
func fragmentsLost() Cause {
	return Cause{
		ID: "fragments-lost", Summary: "fragments are dropped, told apart from packets that are cut up and arrive",
		Predicts: "packets above what crosses whole are lost, those below pass; reassembly fails or is never asked for at the receiver",
		Remedy:   "Lower the pods' MTU so that nothing is cut up: the largest packet that crosses whole is in the paths.",
		Source:   "cilium#46100; /proc/net/snmp Ip: FragCreates, ReasmReqds, ReasmFails",
		look: func(c *Case) Answer {
			a := Answer{}
			for _, back := range directions {
				from, to := c.ends(back)
				p := c.path(PodPod, back)
				if p == nil {
					continue
				}
				made, known := 0.0, false
				fails, asked, whole := 0.0, 0.0, 0.0
				for _, probe := range p.Probes {
					v, ok := probe.growth(from, "node_netstat_Ip_FragCreates")
					made, known = made+v, known || ok
					v, _ = probe.growth(to, "node_netstat_Ip_ReasmReqds")
					asked += v
					v, _ = probe.growth(to, "node_netstat_Ip_ReasmFails")
					fails += v
					v, _ = probe.growth(to, "node_netstat_Ip_ReasmOKs")
					whole += v
				}
				if !known {
					continue
				}
				a.Excluded = "no packet is cut up and lost"
				if made < 4 && asked < 4 || 2*whole >= 0.9*max(made, asked) && fails < 0.05*whole {
					continue
				}
				a.Claims = append(a.Claims, Claim{State: Supported, Node: to, Direction: c.direction(back), Explains: 0.85, underlay: true,
					Text: "packets are cut up at " + from + " and their fragments do not all reach " + to,
					Evidence: []Evidence{
						{"FragCreates", count(made), from}, {"ReasmReqds", count(asked), to}, {"ReasmOKs", count(whole), to}, {"ReasmFails", count(fails), to},
					}})
			}
			return a
		},
	}
}
