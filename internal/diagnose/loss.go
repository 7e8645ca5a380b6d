package diagnose

import "fmt"

// loss: packets of every size are lost, or new connections are.
func loss() Cause {
	return Cause{
		ID: "loss", Summary: "packets are lost, of the underlay or of the pod path alone",
		Predicts: "small and large datagrams lost alike, TCP sends again; of the underlay: the nodes' own traffic, too",
		Remedy:   "Look at the rules and queues of that place: nft list ruleset, tc -s qdisc, ethtool -S.",
		Source:   "cilium#12564, spot#40: loss at one node; k8s#71261: new connections lost",
		look: func(c *Case) Answer {
			var a Answer
			for _, back := range directions {
				small, hasSmall := c.figure(PodPod, back, Small, Loss)
				if hasSmall && small >= minLoss {
					a.Claims = append(a.Claims, claimLoss(c, back, small))
				} else if host, ok := c.figure(Host, back, Small, Loss); ok && host >= minLoss {
					a.Claims = append(a.Claims, claimLoss(c, back, host))
				}
				if len(a.Claims) == 0 { // lost packets explain lost connections
					a.Claims = append(a.Claims, newLost(c, back)...)
				}
			}
			if _, ok := c.figure(PodPod, false, Small, Loss); ok { // without claims, that is: see Answer
				a.Excluded = "no more than " + percent(minLoss) + " of small datagrams is lost, either way"
			}
			return a
		},
	}
}

// claimLoss returns the claim that this share of the packets is lost. A rung that loses a quarter
// of it is bad, too.
func claimLoss(c *Case, back bool, share float64) Claim {
	p := c.locate(back, func(kind string) (bool, bool) {
		v, ok := c.figure(kind, back, Small, Loss)
		return v >= max(minLoss/2, share/4), ok
	})
	return Claim{State: Supported, Node: p.node, Direction: c.direction(back), Explains: 0.8, underlay: p.underlay,
		Text:     fmt.Sprintf("%s of the packets is lost %s", percent(share), c.of(p, back)),
		Evidence: []Evidence{{"datagrams of 100 bytes lost", percent(share), c.direction(back)}, {"rungs", p.rungs, c.direction(back)}},
	}
}

// newLost returns the claim that first packets of connections are dropped while those of
// established ones are not. The share that is dropped is that of connections without an
// answer, or of SYNs that were sent again (three or more), the larger: a sender that waits
// long enough makes its connection all the same.
func newLost(c *Case, back bool) []Claim {
	p := c.path(PodPod, back)
	if p == nil {
		return nil
	}
	probe := p.Probes[Connect]
	failed, hasFailed := probe.Figures[Failed]
	again, _ := probe.growth(p.From, "node_netstat_TcpExt_TCPSynRetrans")
	if again >= 3 {
		failed = max(failed, again/max(1, again+probe.Figures[Rate]*probe.Seconds))
	}
	small, hasSmall := c.figure(PodPod, back, Small, Loss)
	_, hasBulk := c.figure(PodPod, back, Bulk, Goodput)
	switch {
	case !hasFailed || failed < 0.04:
		return nil
	case !hasBulk: // no established connection to hold it against
		return nil
	case hasSmall && small >= failed/4: // other packets are lost, too
		return nil
	case c.fullTable() != "": // see the cause conntrack-full
		return nil
	}
	where := c.locate(back, func(kind string) (bool, bool) { // as above, for each rung
		v, ok := c.figure(kind, back, Connect, Failed)
		if rung := c.path(kind, back); rung != nil {
			connects := rung.Probes[Connect]
			if n, _ := connects.growth(rung.From, "node_netstat_TcpExt_TCPSynRetrans"); n >= 3 {
				v = max(v, n/max(1, n+connects.Figures[Rate]*connects.Seconds))
			}
		}
		return v >= failed/4, ok
	})
	return []Claim{{State: Supported, Node: where.node, Direction: c.direction(back), Explains: 0.8, underlay: where.underlay,
		Text:     "the first packets of new connections are dropped " + c.of(where, back) + "; established connections are not",
		Evidence: []Evidence{{"new connections without an answer", percent(failed), c.direction(back)}, {"TCPSynRetrans", count(again), p.From}, {"new connections", fmt.Sprintf("%.0f per second", probe.Figures[Rate]), c.direction(back)}, {"rungs", where.rungs, c.direction(back)}},
		Next:     "Look for a rule that limits or drops new connections: nft list ruleset | grep -n 'ct state new'",
	}}
}
