package diagnose

import (
	"fmt"
	"slices"
)

// qdiscDrops: a queue of a device of the path is full.
func qdiscDrops() Cause {
	return Cause{
		ID: "qdisc-drops", Summary: "the queue of a device of the path drops packets",
		Predicts: "bulk sends again; round trips under load long",
		Remedy:   "Lengthen the queue or let fq_codel manage it: ip link set DEVICE txqueuelen; tc qdisc replace.",
		Source:   "tc -s qdisc: dropped",
		look: func(c *Case) Answer {
			a := Answer{}
			for i := range c.Snapshots {
				s := &c.Snapshots[i]
				for _, after := range s.After {
					k := slices.IndexFunc(s.Qdiscs, func(q Qdisc) bool { return q.Device == after.Device && q.Kind == after.Kind })
					if k < 0 || slowsDown(after) {
						continue
					}
					a.Excluded = "no queue of the path dropped a packet"
					drops, packets := after.Drops-s.Qdiscs[k].Drops, after.Packets-s.Qdiscs[k].Packets
					if drops < 10 || drops < minLoss*packets {
						continue
					}
					a.Claims = append(a.Claims, Claim{State: Supported, Node: s.Node, Device: after.Device, Explains: 0.6, underlay: true,
						Text:     fmt.Sprintf("the queue of %s of %s dropped %s of its packets (%s)", after.Device, s.Endpoint, percent(drops/max(1, packets)), after.Kind),
						Evidence: []Evidence{{"tc -s qdisc dropped", "+" + count(drops), s.Endpoint + " " + after.Device}}})
				}
			}
			return a
		},
	}
}
