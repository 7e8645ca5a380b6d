package diagnose

import "fmt"

// segmentsLost: large segmented frames are lost while packets of one MTU pass.
func segmentsLost() Cause {
	return Cause{
		ID: "segments-lost", Summary: "large segmented frames are lost, small ones pass",
		Predicts: "bulk from pod to pod sends again and stalls; datagrams and round trips unharmed; the nodes' own traffic, which is not forwarded, unharmed",
		Proof:    "tx-tcp-segmentation and tx-generic-segmentation of the sending pod's device, off",
		Remedy:   "Turn segmentation offload off on the device that forwards, or mend its driver.",
		Source:   "projectbluefin/lab#662, fixed by #664",
		look: func(c *Case) Answer {
			a := Answer{Excluded: "no segments are sent again that datagrams of the same size survive"}
			for _, back := range directions {
				again, ok := c.figure(PodPod, back, Bulk, Retransmits)
				if !ok {
					return Answer{}
				}
				sent := again
				goodput, _ := c.figure(PodPod, back, Bulk, Goodput)
				small, _ := c.figure(PodPod, back, Small, Loss)
				large, hasLarge := c.figure(PodPod, back, Large, Loss)
				host, _ := c.figure(Host, back, Bulk, Retransmits)
				whole, sized := c.figure(PodPod, back, Size, Whole)
				if sized && int(whole) < c.podMTU(back) { // no packet of that size crosses: not the segmentation
					continue
				}
				answers, _ := c.figure(PodPod, !back, Small, Loss)
				if c.stalls(PodPod, back) && small < minLoss && large < minLoss { // TCP got nowhere, so that little was sent again
					again = 1
				}
				if again < 4*minLoss || answers >= minLoss || !hasLarge || large >= again/4 || small >= again/4 || host >= again/4 {
					continue
				}
				p := c.locate(back, func(kind string) (bool, bool) {
					v, ok := c.figure(kind, back, Bulk, Retransmits)
					return v >= max(2*minLoss, min(again, 0.15)/4) || c.stalls(kind, back), ok
				})
				x := Claim{State: Supported, Node: p.node, Direction: c.direction(back),
					Explains: 0.9 * (1 - max(small, large)/again), // packets of every size that are lost are not its
					Text:     fmt.Sprintf("segments larger than the MTU are lost %s, small packets are not; the nodes' own traffic is unharmed", c.of(p, back)),
					Evidence: []Evidence{
						{"goodput of pods", bitrate(goodput), c.direction(back)},
						{"segments sent again", percent(sent), c.direction(back)},
						{"datagrams of 100 bytes, of the MTU's size lost", percent(small) + ", " + percent(large), c.direction(back)},
						{"rungs", p.rungs, c.direction(back)},
					},
				}
				for _, h := range c.carriers(back) {
					if c.nodeOf(h.Endpoint) == p.node && !h.Sent && !c.snapshot(h.Endpoint).Pod && x.Device == "" {
						x.Device = h.Device
					}
				}
				pod, _ := c.pods(back)
				if d := c.sender(pod, back); d != "" && small < minLoss { // else smaller packets would fare better whatever is lost
					x.setting = &Setting{Endpoint: pod, What: "tx-tcp-segmentation, tx-generic-segmentation of " + d + " off", Back: back,
						Changes: []Change{{"feature", d + " tx-tcp-segmentation", "off"}, {"feature", d + " tx-generic-segmentation", "off"}}}
				}
				x.Next = fmt.Sprintf("On %s: ethtool -K DEVICE tso off gso off for the device that forwards; nft list ruleset | grep -n length", either(p.node, "both nodes"))
				a.Claims = append(a.Claims, x)
			}
			return a
		},
	}
}

// stalls says that bulk hardly moves on the path, while it was allowed a hundred times more
// or nodes send that much.
func (c *Case) stalls(kind string, back bool) bool {
	got, ok := c.figure(kind, back, Bulk, Goodput)
	own, ok2 := c.figure(Host, back, Bulk, Goodput)
	return ok && ok2 && got < 0.01*own
}

// sender returns the device by which the pod sends.
func (c *Case) sender(pod string, back bool) string {
	for _, h := range c.carriers(back) {
		if h.Endpoint == pod && h.Sent {
			return h.Device
		}
	}
	return ""
}

func either(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
