package diagnose

import "fmt"

// wasted is the share of a packet that may lie idle.
const wasted = 0.05

// mtuWastes: the pods' packets are smaller than what crosses.
func mtuWastes() Cause {
	return Cause{
		ID: "mtu-wastes", Summary: "the pods' MTU is below what would cross",
		Predicts: "bulk costs more packets and CPU; nothing is lost",
		Remedy:   "Set the pods' MTU to that of the nodes' link less the encapsulation.",
		Source:   "sini/nix-config#122; check mtu",
		look: func(c *Case) Answer {
			a := Answer{}
			for _, back := range directions {
				from, to := c.ends(back)
				mtu := c.podMTU(back)
				up, down := c.uplink(from), c.uplink(to)
				if mtu == 0 || up == nil || down == nil {
					continue
				}
				fits := min(up.MTU, down.MTU) - c.overhead()
				a.Excluded = fmt.Sprintf("the pods' MTU %d leaves less than %s of %d unused", mtu, percent(wasted), fits)
				if float64(fits-mtu) <= wasted*float64(fits) {
					continue
				}
				a.Claims = append(a.Claims, Claim{State: Supported, Node: from, Direction: c.direction(back), Explains: float64(fits-mtu) / float64(fits) * 0.5,
					Text:     fmt.Sprintf("pods of %s send packets of %d bytes at most and could send %d", from, mtu, fits),
					Evidence: []Evidence{{"MTU of the pod", fmt.Sprint(mtu), from}, {"MTU of " + up.Name, fmt.Sprint(up.MTU), from}},
					Next:     fmt.Sprintf("Set the pods' MTU to %d.", fits),
				})
			}
			return a
		},
	}
}
