package diagnose

import "fmt"

// mtuDiffers: a node's MTUs are not those of the others.
func mtuDiffers() Cause {
	return Cause{
		ID: "mtu-differs", Summary: "a node's devices have other MTUs than those of the other nodes",
		Predicts: "large packets get lost or are cut up towards that node or from it",
		Remedy:   "Give the device the MTU of its peers.",
		Source:   "hcloud-k8s#450",
		look: func(c *Case) Answer {
			nodes := c.nodes()
			a := Answer{}
			if len(nodes) < 2 {
				return a
			}
			if len(c.on(nodes[0].Endpoint)) > 0 {
				a.Excluded = "the devices of the path have the same MTU on all nodes"
			}
			for _, name := range c.on(nodes[0].Endpoint) {
				first := nodes[0].device(name)
				if first == nil || first.Kind == "veth" && c.uplink(nodes[0].Endpoint) != first {
					continue
				}
				for _, other := range nodes[1:] {
					d := other.device(name)
					if d == nil || d.MTU == first.MTU {
						continue
					}
					odd, normal := first, d
					node := nodes[0].Endpoint
					if d.MTU < first.MTU {
						odd, normal, node = d, first, other.Endpoint
					}
					a.Claims = append(a.Claims, Claim{State: c.ifLarge(Supported), Node: node, Device: name, Explains: 0.75, underlay: true,
						Text:     fmt.Sprintf("%s of %s has an MTU of %d, that of its peer %d", name, node, odd.MTU, normal.MTU),
						Evidence: []Evidence{{"MTU", fmt.Sprint(odd.MTU), node + " " + name}, {"MTU", fmt.Sprint(normal.MTU), "peer " + name}},
						Next:     fmt.Sprintf("ip link set %s mtu %d   on %s", name, normal.MTU, node),
					})
				}
			}
			return a
		},
	}
}

// ifLarge returns the state if large packets suffer in some direction, else Suspected.
func (c *Case) ifLarge(s State) State {
	for _, back := range directions {
		for _, kind := range []string{PodPod, Host} {
			whole, ok := c.figure(kind, back, Size, Whole)
			mtu, _ := c.figure(kind, back, Size, MTU)
			if ok && whole < mtu {
				return s
			}
		}
	}
	return Suspected
}
