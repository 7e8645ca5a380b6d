package diagnose

import (
	"fmt"
	"slices"
	"strings"
)

// Band is what a datapath usually costs, as ratios of pods to nodes.
type Band struct {
	Bulk [2]float64 // goodput
	RTT  [2]float64 // round trip, median
}

// bands are by what carries the pods' packets between nodes, widened by a half each way, since
// short slices on a busy machine differ by that much. Goodput is that of the project's runs and of
// products on its test bed (internal/analysis/otherruns, whose test holds the two together); round
// trips, and all of tun, are from a few runs of a few lab forms (docs/diagnose.md).
var bands = map[string]Band{
	"vxlan":  {Bulk: [2]float64{0.19, 0.98}, RTT: [2]float64{0.7, 2.6}},
	"tun":    {Bulk: [2]float64{0.005, 0.3}, RTT: [2]float64{0.9, 8}},
	"routes": {Bulk: [2]float64{0.32, 1.32}, RTT: [2]float64{0.6, 2}},
}

// UsualGoodput returns the band of the ratio of pods' goodput to their nodes' for a kind of
// transport; known is false for one that was never measured.
func UsualGoodput(transport string) (band [2]float64, known bool) {
	b, known := bands[transport]
	return b.Bulk, known
}

// TransportOf returns what carries the pods' packets by the words of a datapath, as "bridge ×
// vxlan × kube-proxy": the kind of a tunnel or routes; "" where the words tell neither.
func TransportOf(datapath string) string {
	for _, word := range strings.Split(datapath, " × ") {
		if word == "routes" || slices.Contains(tunnels, word) {
			return word
		}
	}
	return ""
}

// tunnels are the kinds of devices that put packets into others.
var tunnels = []string{"vxlan", "geneve", "ipip", "gre", "gretap", "sit", "ip6tnl", "wireguard", "tun"}

// transport returns the tunnel device's kind and name that carries pods' packets, or
// "routes".
func (c *Case) transport() (kind, device string) {
	for _, back := range directions {
		for _, h := range c.carriers(back) {
			if d := c.snapshot(h.Endpoint).device(h.Device); d != nil && slices.Contains(tunnels, d.Kind) {
				return d.Kind, d.Name
			}
		}
	}
	if c.Transport != "" {
		return c.Transport, ""
	}
	return "routes", ""
}

// band returns what is usual for the case's transport; a transport that was never
// measured has the widest.
func (c *Case) band() Band {
	kind, _ := c.transport()
	if b, ok := bands[kind]; ok {
		return b
	}
	return bands["vxlan"]
}

// usual says whether the pods' figures are those of their datapath, and the sentence.
func (c *Case) usual() (bool, string) {
	kind, _ := c.transport()
	band := c.band()
	name := map[string]string{"routes": "a routed network"}[kind]
	if name == "" {
		name = strings.ToUpper(kind)
	}
	within, measured := true, false
	var goodput, rtts []string
	for _, back := range directions {
		if r, ok := c.rtt(back); ok {
			measured = true
			within = within && !c.slowRTT(back)
			rtts = append(rtts, fmt.Sprintf("%.2g× %s", r, c.direction(back)))
		}
		switch r, ok := c.bulk(back); {
		case c.held(PodPod, back):
			goodput = append(goodput, "the allowed "+bitrate(c.MaxRate)+" "+c.direction(back))
		case ok:
			measured = true
			within = within && !c.slowBulk(back)
			goodput = append(goodput, fmt.Sprintf("%.2g× %s", r, c.direction(back)))
		}
		if share, ok := c.lossShare(PodPod, back); ok && share > minLoss {
			within = false
		}
	}
	if !measured {
		return false, "the pods' paths were not measured"
	}
	var words []string
	if len(goodput) > 0 {
		words = append(words, fmt.Sprintf("Goodput, pods to nodes: %s (usual for %s: %.2g–%.2g×).", strings.Join(goodput, ", "), name, band.Bulk[0], band.Bulk[1]))
	}
	if len(rtts) > 0 {
		words = append(words, fmt.Sprintf("Round trip: %s (usual: %.2g–%.2g×).", strings.Join(rtts, ", "), band.RTT[0], band.RTT[1]))
	}
	return within, strings.Join(words, " ")
}

// usualCause is the rest: the engine decides it when no other cause is claimed.
func usualCause() Cause {
	return Cause{
		ID: "usual", Summary: "nothing but what this datapath costs",
		Predicts: "pods against nodes are within the band of the catalogue's lab forms, both ways, without loss",
		Remedy:   "Compare datapaths: cnibench run --arena lab",
		Source:   "docs/diagnose.md",
		look:     func(*Case) Answer { return Answer{} },
	}
}
