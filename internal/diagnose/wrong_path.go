package diagnose

import (
	"fmt"
	"slices"
)

// wrongPath: packets take another way than they should.
func wrongPath() Cause {
	return Cause{
		ID: "wrong-path", Summary: "pods' packets leave a node by another device than its own do, or are wrapped twice",
		Predicts: "pods slow while nodes are fast; one direction where the routes are asymmetric",
		Remedy:   "Mend the routes or the product's choice of the node's address (IP autodetection, --iface).",
		Source:   "calico#10041; ip route get",
		look: func(c *Case) Answer {
			a := Answer{}
			for _, back := range directions {
				from, _ := c.ends(back)
				up := c.uplink(from)
				hops := c.carriers(back)
				if up == nil || len(hops) == 0 {
					continue
				}
				if a.Excluded == "" {
					a.Excluded = "pods' packets leave their node by the device that the node's own take"
				}
				var wrapped []string
				through, other := false, ""
				for _, h := range hops {
					d := c.snapshot(h.Endpoint).device(h.Device)
					if h.Endpoint != from || !h.Sent || d == nil {
						continue
					}
					if slices.Contains(tunnels, d.Kind) {
						wrapped = append(wrapped, d.Name)
						continue
					}
					if d.Name == up.Name {
						through = true
					} else if d.Master == "" && d.Kind != "bridge" && len(d.Addrs) > 0 && d.Kind == up.Kind && !slices.Contains(c.local(from), d.Name) {
						other = d.Name
					}
				}
				switch {
				case len(wrapped) > 1:
					a.Claims = append(a.Claims, Claim{State: Supported, Node: from, Device: wrapped[0], Direction: c.direction(back), Explains: 0.5,
						Text:     fmt.Sprintf("packets of pods are wrapped twice on %s: by %s and by %s", from, wrapped[0], wrapped[1]),
						Evidence: []Evidence{{"devices that carry the same bytes", fmt.Sprint(wrapped), from}}})
				case !through && other != "":
					a.Claims = append(a.Claims, Claim{State: Supported, Node: from, Device: other, Direction: c.direction(back), Explains: 0.8,
						Text:     fmt.Sprintf("pods' packets leave %s by %s, its own by %s", from, other, up.Name),
						Evidence: []Evidence{{"bytes of pods", other, from}, {"bytes of nodes", up.Name, from}},
						Next:     fmt.Sprintf("ip route get <pod of the other node>   on %s", from)})
				}
			}
			return a
		},
	}
}

// local returns the devices of the node that carry its own pods' side of a path: those
// that also carry packets between two pods of the node.
func (c *Case) local(node string) (list []string) {
	for _, h := range c.hops(c.path(SameNode, false), node) {
		list = append(list, h.Device)
	}
	return list
}
