package diagnose

import (
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/stat"
)

// asymmetric is how many times more the nodes send one way than the other, before it
// is a fault of the nodes' network.
const asymmetric = 2.5

// hostToo: the nodes' own network is as slow.
func hostToo() Cause {
	return Cause{
		ID: "host-too", Summary: "the nodes' own network is as slow: not the pod network",
		Predicts: "node to node is as bad as pod to pod",
		Remedy:   "Look at the nodes' link and machines, not at the pod network.",
		Source:   "half of the incidents that were measured by Pingmesh were not the network's, and the ladder begins with the nodes",
		Stops:    true,
		look: func(c *Case) Answer {
			for _, back := range directions {
				var e []Evidence
				from, to := c.ends(back)
				at := from + " → " + to
				own, ok := c.figure(Host, back, Bulk, Goodput)
				other, _ := c.figure(Host, !back, Bulk, Goodput)
				if c.MaxRate > 0 && ok && own < shortOfCap*c.MaxRate {
					e = append(e, Evidence{"goodput between the nodes", bitrate(own) + " of " + bitrate(c.MaxRate) + " that were offered", at})
				} else if ok && own > 0 && other/own > asymmetric && c.apart(back) {
					e = append(e, Evidence{"goodput between the nodes", fmt.Sprintf("%s, the other way %s", bitrate(own), bitrate(other)), at})
				}
				for _, f := range []struct{ probe, figure, what string }{
					{Bulk, Retransmits, "segments sent again between the nodes"}, {Small, Loss, "small datagrams lost between the nodes"}, {Large, Loss, "large datagrams lost between the nodes"},
				} {
					if share, ok := c.figure(Host, back, f.probe, f.figure); ok && share >= minLoss && c.inMost(back, f.probe, f.figure) {
						e = append(e, Evidence{f.what, percent(share), at})
					}
				}
				if len(e) > 0 {
					pods, ok := c.bulk(back)
					text := "the nodes' own network is slow from " + at + ": not the pod network"
					if ok {
						text += fmt.Sprintf(" (pods get %.2g times what nodes get)", pods)
					}
					return Answer{Claims: []Claim{{State: Supported, Direction: c.direction(back), Evidence: e, Text: text, underlay: true}}}
				}
			}
			if _, ok := c.figure(Host, false, Bulk, Goodput); !ok {
				return Answer{}
			}
			return Answer{Excluded: "node to node is fast and loses nothing, both ways"}
		},
	}
}

// apart says that every slice of bulk between the nodes in that direction is slower than
// every one in the other.
func (c *Case) apart(back bool) bool {
	own, other := c.path(Host, back), c.path(Host, !back)
	a, b := own.Probes[Bulk].Slices[Goodput], other.Probes[Bulk].Slices[Goodput]
	return len(a) == 0 || len(b) == 0 || slices.Max(a) < slices.Min(b)
}

// inMost says that the share between the nodes is there in most slices: a single one of a busy
// machine can be anything.
func (c *Case) inMost(back bool, probe, figure string) bool {
	shares := c.path(Host, back).Probes[probe].Slices[figure]
	return len(shares) == 0 || stat.Median(shares) >= minLoss
}
