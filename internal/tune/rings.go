package tune

import (
	"cmp"
	"strconv"
)

// rings makes room for bursts between two polls of the driver.
var rings = Setting{
	Name:    "rings",
	Summary: "interface ring sizes at the hardware's maximum",
	Why:     "a burst is queued instead of dropped while the CPU is busy",
	Studies: []string{"kube-ovn"},
	Source:  "ethtool(8) -g; Kube-OVN documentation, Performance Tuning (255 to 4096)",
	Cost:    "memory for every descriptor; a full ring is a long queue; many drivers take the link down for a moment",
	Avoid:   "when the tail of latency matters more than loss",
	Scope:   ScopeMachine,
	Plan: func(f *Facts, _ Params) (Proposal, error) {
		return f.each(func(n NIC) ([]Change, error) {
			if f.m.NICs == nil {
				return nil, notApplicable("this machine's interfaces cannot be read")
			}
			r, err := f.m.NICs.Rings(n.Name)
			if err != nil || r.MaxRX == 0 && r.MaxTX == 0 {
				return nil, notApplicable("%s has no ring sizes to set (driver %s)", n.Name, cmp.Or(n.Driver, "none"))
			}
			var changes []Change
			for _, ring := range []struct {
				name      string
				size, max int
			}{{"rx", r.RX, r.MaxRX}, {"tx", r.TX, r.MaxTX}} {
				if ring.max > 0 {
					changes = append(changes, Change{Place{Ring, n.Name + " " + ring.name}, strconv.Itoa(ring.size), strconv.Itoa(ring.max)})
				}
			}
			return changes, nil
		})
	},
}
