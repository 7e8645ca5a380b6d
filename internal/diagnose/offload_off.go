package diagnose

import (
	"fmt"
	"slices"
	"strings"
)

// senderFeatures are the offloads without which a device gets its packets cut up in
// software before they reach it. Checksum offloads count as one: any of them will do.
var senderFeatures = [][]string{
	{"tx-checksum-ip-generic", "tx-checksum-ipv4"},
	{"tx-scatter-gather"},
	{"tx-tcp-segmentation"},
	{"tx-generic-segmentation"},
	{"tx-udp_tnl-segmentation"},
}

// cutUp is the packet's size, in MTUs of the device, below which segments were cut up
// before they reached the device.
const cutUp = 1.5

// offloadOff: an offload is off on a device of the path, so that the kernel cuts
// segments up early and carries many small packets.
func offloadOff() Cause {
	return Cause{
		ID: "offload-off", Summary: "checksum, TSO, GSO or GRO off on a device of the path",
		Predicts: "bulk from pod to pod slow and costly, the nodes' own fast; round trips unharmed",
		Proof:    "the device's features, on",
		Remedy:   "Set the offload on and keep it so: the product's agent or a unit of the node may turn it off.",
		Source:   "projectcalico/calico#11435 (off heals), docs/tuning.md (on heals), Documentation/networking/segmentation-offloads.rst",
		look:     lookOffloads,
	}
}

func lookOffloads(c *Case) Answer {
	var a Answer
	seen := 0
	for _, back := range directions {
		hops := c.carriers(back)
		before := 0.0 // the largest packet so far on the way
		cut := false  // a device of the way got small packets already
		for _, h := range hops {
			d := c.snapshot(h.Endpoint).device(h.Device)
			if d == nil || d.Features == nil || d.MTU == 0 || d.Kind == "tun" { // a program reads a tun device: it has no offloads
				continue
			}
			seen++
			small := h.size() < cutUp*float64(d.MTU)
			if !h.Sent {
				// Cut up by the wire and not put together again: the receiver's GRO.
				if rx, known := d.Features["rx-gro"]; known && !rx && small && !cut && before > 2*cutUp*float64(d.MTU) && d.Kind != "veth" {
					a.Claims = append(a.Claims, offload(c, h, d, back, []string{"rx-gro"}, before))
				}
			}
			if h.Sent && small {
				if off := listOff(d); len(off) > 0 && !slices.ContainsFunc(a.Claims, func(x Claim) bool { return x.Device == h.Device && x.Node == c.nodeOf(h.Endpoint) && x.Pod == "" }) && !cut {
					a.Claims = append(a.Claims, offload(c, h, d, back, off, before))
				}
				cut = true
			}
			before = max(before, h.size())
		}
	}
	if seen > 0 {
		a.Excluded = "bytes per packet: no device of the path gets its packets cut up for an offload that it lacks"
	}
	return a
}

// listOff returns the sender's features that are off on the device.
func listOff(d *Device) (off []string) {
	for _, any := range senderFeatures {
		known, on := "", false
		for _, f := range any {
			if state, has := d.Features[f]; has {
				if known == "" {
					known = f
				}
				on = on || state
			}
		}
		if known == "tx-udp_tnl-segmentation" && d.Kind != "" { // of an uplink of hardware alone
			continue
		}
		if known != "" && !on {
			off = append(off, known)
		}
	}
	return off
}

func offload(c *Case, h Hop, d *Device, back bool, off []string, before float64) Claim {
	node := c.nodeOf(h.Endpoint)
	x := Claim{State: Supported, Node: node, Device: d.Name, Direction: c.direction(back), Explains: 0.5,
		Text: fmt.Sprintf("%s off on %s of %s: packets of %.0f bytes where %.0f would pass", strings.Join(off, ", "), d.Name, h.Endpoint, h.size(), max(before, 64<<10)),
	}
	if s := c.snapshot(h.Endpoint); s.Pod {
		x.Pod = h.Endpoint
	}
	if before > h.size() {
		x.Text = fmt.Sprintf("%s off on %s of %s: packets of %.0f bytes are cut to %.0f before it", strings.Join(off, ", "), d.Name, h.Endpoint, before, h.size())
	}
	x.Evidence = []Evidence{
		{"ethtool -k", strings.Join(off, " off, ") + " off", h.Endpoint + " " + d.Name},
		{"bytes per packet", fmt.Sprintf("%.0f at an MTU of %d", h.size(), d.MTU), h.Endpoint + " " + d.Name},
	}
	var to []string
	for _, f := range off {
		to = append(to, f+" on")
	}
	x.Next = fmt.Sprintf("On %s: ethtool -K %s %s", h.Endpoint, d.Name, strings.Join(to, " "))
	differs := false
	if peer := c.peer(node); peer != nil && x.Pod == "" {
		if other := peer.device(d.Name); other != nil && other.Features[off[0]] {
			differs, x.certain = true, true
			x.Evidence = append(x.Evidence, Evidence{"ethtool -k", off[0] + " on", peer.Endpoint + " " + d.Name})
		}
	}
	if !differs && !c.slowBulk(back) {
		x.State = Suspected
	}
	if c.slowBulk(back) {
		x.Explains = 0.9
	}
	x.setting = &Setting{Endpoint: h.Endpoint, What: strings.Join(off, ", ") + " of " + d.Name + " on", Back: back}
	for _, f := range off {
		x.setting.Changes = append(x.setting.Changes, Change{"feature", d.Name + " " + f, "on"})
	}
	return x
}
