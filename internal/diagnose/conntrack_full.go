package diagnose

import "fmt"

// nearlyFull is the share of the table above which new connections are in danger.
const nearlyFull = 0.95

// fullTable returns the node whose table of connections is full; "" where none is.
func (c *Case) fullTable() string {
	for i := range c.Snapshots {
		s := &c.Snapshots[i]
		if s.ConntrackMax > 0 && float64(s.ConntrackCount) >= nearlyFull*float64(s.ConntrackMax) {
			return s.Endpoint
		}
	}
	return ""
}

// conntrackFull: no connection can be added to the table.
func conntrackFull() Cause {
	return Cause{
		ID: "conntrack-full", Summary: "the table of tracked connections is full",
		Predicts: "new connections are dropped or late by 1, 3 or 7 s; established ones unharmed",
		Remedy:   "Raise net.netfilter.nf_conntrack_max and find out who fills the table: conntrack -L | sort by source.",
		Source:   "k8s#71261, calico#8676; nf_conntrack: table full, dropping packet",
		look: func(c *Case) Answer {
			a := Answer{}
			for i := range c.Snapshots {
				s := &c.Snapshots[i]
				if s.ConntrackMax == 0 {
					continue
				}
				share := float64(s.ConntrackCount) / float64(s.ConntrackMax)
				if a.Excluded == "" {
					a.Excluded = fmt.Sprintf("%d of %d connections are tracked", s.ConntrackCount, s.ConntrackMax)
				}
				drops, _ := c.growthOver(s.Endpoint, "node_nf_conntrack_stat_drop")
				early, _ := c.growthOver(s.Endpoint, "node_nf_conntrack_stat_early_drop")
				if share < nearlyFull && drops+early < 3 {
					continue
				}
				x := Claim{State: Suspected, Node: s.Node, Explains: 0.7,
					Text:     fmt.Sprintf("%s tracks %d connections of at most %d: new ones are dropped", s.Endpoint, s.ConntrackCount, s.ConntrackMax),
					Evidence: []Evidence{{"nf_conntrack_count of nf_conntrack_max", fmt.Sprintf("%d of %d", s.ConntrackCount, s.ConntrackMax), s.Endpoint}},
					Next:     fmt.Sprintf("sysctl -w net.netfilter.nf_conntrack_max=%d   on %s, and look who fills it: conntrack -L", 2*s.ConntrackMax, s.Node),
					underlay: true,
				}
				if drops+early > 0 {
					x.State, x.Explains = Supported, 0.9
					x.Evidence = append(x.Evidence, Evidence{"drop and early_drop of nf_conntrack", "+" + count(drops+early), s.Endpoint})
				}
				for _, back := range directions {
					if c.slowConnect(PodPod, back) {
						rate, _ := c.figure(PodPod, back, Connect, Rate)
						x.State, x.Explains = Supported, 0.95
						x.Evidence = append(x.Evidence, Evidence{"new connections", fmt.Sprintf("%.0f per second", rate), c.direction(back)})
						break
					}
				}
				a.Claims = append(a.Claims, x)
			}
			return a
		},
	}
}
