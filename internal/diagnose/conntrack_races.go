package diagnose

import "fmt"

// conntrackRaces: two packets of one flow race for one entry, and one is dropped.
func conntrackRaces() Cause {
	return Cause{
		ID: "conntrack-races", Summary: "packets that race for an entry of connection tracking are dropped",
		Predicts: "some look-ups take 5 s, some connections 1 s; everything else unharmed",
		Remedy:   "NodeLocal DNSCache, or `options single-request-reopen` in resolv.conf; a kernel since 5.1.",
		Source:   "k8s#56903, weave#3287; /proc/net/stat/nf_conntrack insert_failed",
		look: func(c *Case) Answer {
			a := Answer{}
			for i := range c.Snapshots {
				s := &c.Snapshots[i]
				failed, ok := c.growthOver(s.Endpoint, "node_nf_conntrack_stat_insert_failed")
				if ok {
					a.Excluded = "insert_failed did not grow with a connection or look-up that was late"
				}
				late := 0.0
				for _, p := range c.Paths {
					late = max(late, p.Probes[Connect].Figures[Late], p.Probes[Lookup].Figures[Late], p.Probes[Lookup].Figures[Failed])
				}
				if failed < 1 || late <= 0 {
					continue
				}
				a.Claims = append(a.Claims, Claim{State: Supported, Node: s.Node, Explains: 0.6,
					Text:     fmt.Sprintf("%s dropped %s packets that raced for an entry of connection tracking", s.Endpoint, count(failed)),
					Evidence: []Evidence{{"insert_failed", "+" + count(failed), s.Endpoint}, {"late connections or look-ups", percent(late), "pods"}}})
			}
			return a
		},
	}
}
