package diagnose

import "fmt"

// overheads are what a tunnel takes of each packet over IPv4, bytes.
var overheads = map[string]int{"vxlan": 50, "geneve": 50, "ipip": 20, "gre": 24, "gretap": 38, "wireguard": 60, "tun": 28}

// overhead returns what the case's transport takes of a packet.
func (c *Case) overhead() int {
	kind, _ := c.transport()
	return overheads[kind]
}

// podMTU returns the MTU of the sending pod's device.
func (c *Case) podMTU(back bool) int {
	v, _ := c.figure(PodPod, back, Size, MTU)
	return int(v)
}

// uplink returns the device by which a node reaches the other nodes: the one that most
// of the bulk between the nodes passed.
func (c *Case) uplink(node string) *Device {
	var best *Device
	maximum := 0.0
	for _, back := range directions {
		for _, h := range c.hops(c.path(Host, back), node) {
			if d := c.snapshot(node).device(h.Device); d != nil && h.Bytes > maximum {
				maximum, best = h.Bytes, d
			}
		}
	}
	return best
}

// mtuExceeds: the pods' packets are larger than what crosses.
func mtuExceeds() Cause {
	return Cause{
		ID: "mtu-exceeds", Summary: "the pods' MTU is above what crosses to another node whole",
		Predicts: "small packets pass; packets of the pods' MTU are lost or cut up, in one direction or both",
		Remedy:   "Set the pods' MTU to what crosses.",
		Source:   "hcloud-k8s#450; RFC 1191, RFC 8899",
		look: func(c *Case) Answer {
			a := Answer{}
			for _, back := range directions {
				whole, ok := c.figure(PodPod, back, Size, Whole)
				if !ok {
					continue
				}
				mtu := c.podMTU(back)
				from, to := c.ends(back)
				cut, _ := c.growthOver(to, "node_netstat_Ip_ReasmReqds")
				made, _ := c.growthOver(from, "node_netstat_Ip_FragCreates")
				a.Excluded = fmt.Sprintf("packets of %d bytes, the pods' MTU, cross whole", mtu)
				if int(whole) >= mtu && cut < 4 && made < 4 {
					continue
				}
				x := Claim{State: Supported, Direction: c.direction(back), Explains: 0.7,
					Text:     fmt.Sprintf("pods send packets of up to %d bytes, and no more than %.0f cross from %s to %s", mtu, whole, from, to),
					Evidence: []Evidence{{"MTU of the pod", fmt.Sprint(mtu), c.direction(back)}, {"largest packet that crosses", count(whole), c.direction(back)}},
					Next:     fmt.Sprintf("Set the pods' MTU to %.0f, or the links of that way to %d.", whole, mtu+c.overhead()),
				}
				if int(whole) >= mtu {
					x.Text = fmt.Sprintf("packets of the pods' MTU %d are cut up on the way from %s to %s and put together again", mtu, from, to)
					x.Explains, x.Next = 0.4, fmt.Sprintf("Lower the pods' MTU until ReasmReqds of %s stays where it is.", to)
				}
				if cut >= 4 || made >= 4 {
					x.Evidence = append(x.Evidence, Evidence{"FragCreates", count(made), from}, Evidence{"ReasmReqds", count(cut), to})
				}
				if host, ok := c.figure(Host, back, Size, Whole); ok {
					if up, _ := c.figure(Host, back, Size, MTU); host < up {
						x.Text += fmt.Sprintf("; the nodes' own packets cross up to %.0f of %.0f, so the link is at fault", host, up)
						x.underlay = true
					}
				}
				a.Claims = append(a.Claims, x)
			}
			return a
		},
	}
}
