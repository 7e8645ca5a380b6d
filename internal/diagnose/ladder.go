package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/stat"
)

// What counts as a symptom.
const (
	minLoss    = 0.005 // share of segments or datagrams
	shortOfCap = 0.85  // of the rate that bulk was held to
)

// directions are both, the first end to the second first.
var directions = []bool{false, true}

// bulk returns the ratio of the pods' goodput to the nodes' in that direction.
func (c *Case) bulk(back bool) (ratio float64, ok bool) {
	pods, ok1 := c.figure(PodPod, back, Bulk, Goodput)
	nodes, ok2 := c.figure(Host, back, Bulk, Goodput)
	return pods / max(1, nodes), ok1 && ok2
}

// rtt returns the ratio of the pods' round trip to the nodes': of the pods' best slice to
// the middle one of the nodes, since a single slice of a busy machine can be anything.
func (c *Case) rtt(back bool) (ratio float64, ok bool) {
	pods, ok1 := c.figure(PodPod, back, RTT, P50)
	nodes, ok2 := c.figure(Host, back, RTT, P50)
	if p := c.path(Host, back); p != nil && len(p.Probes[RTT].Slices[P50]) > 0 {
		nodes = stat.Median(p.Probes[RTT].Slices[P50])
	}
	return pods / max(1e-9, nodes), ok1 && ok2 && nodes > 0
}

// slowBulk says that pods send less in that direction than their datapath costs.
func (c *Case) slowBulk(back bool) bool {
	if c.held(PodPod, back) {
		return false
	}
	ratio, ok := c.bulk(back)
	return ok && ratio < c.band().Bulk[0]
}

// held says that bulk reached the rate that it was held to.
func (c *Case) held(kind string, back bool) bool {
	got, ok := c.figure(kind, back, Bulk, Goodput)
	return c.MaxRate > 0 && ok && got >= shortOfCap*c.MaxRate
}

// slowRTT says that the pods' round trip takes longer than their datapath costs.
func (c *Case) slowRTT(back bool) bool {
	ratio, ok := c.rtt(back)
	return ok && ratio > c.band().RTT[1]
}

// slowConnect says that new connections take longer than the round trip explains, or
// that some were not made.
func (c *Case) slowConnect(kind string, back bool) bool {
	p50, ok := c.figure(kind, back, Connect, P50)
	host, hasHost := c.figure(Host, back, Connect, P50)
	rate, _ := c.figure(kind, back, Connect, Rate)
	asked, _ := c.figure(kind, back, Connect, Asked)
	switch {
	case asked > 0 && rate < shortOfCap*asked:
		return true
	case !ok || !hasHost || host <= 0:
		return false
	}
	return p50/host > max(3, 1.5*c.band().RTT[1])
}

// lossShare returns the share of what TCP sent again on the path, or of the datagrams that
// it lost, the larger.
func (c *Case) lossShare(kind string, back bool) (share float64, ok bool) {
	for _, f := range []struct{ probe, figure string }{{Bulk, Retransmits}, {Small, Loss}, {Large, Loss}} {
		if v, has := c.figure(kind, back, f.probe, f.figure); has {
			share, ok = max(share, v), true
		}
	}
	return share, ok
}

// place says where on the way of that direction something happens that shows on some
// rungs of the ladder and not on others.
type place struct {
	node     string // the node's endpoint; "" where the rungs do not tell
	underlay bool   // the nodes' own traffic has it, too
	rungs    string // in words
}

// locate holds the rungs of a direction against each other. The rung from pod to node
// passes the sender's node as a router, that from node to pod the receiver's.
func (c *Case) locate(back bool, bad func(kind string) (bad, ok bool)) place {
	from, to := c.ends(back)
	var words []string
	is := map[string]bool{}
	for _, kind := range []string{Host, PodNode, NodePod, PodPod} {
		b, ok := bad(kind)
		if !ok {
			continue
		}
		is[kind] = b
		words = append(words, kind+map[bool]string{true: " bad", false: " good"}[b])
	}
	p := place{rungs: strings.Join(words, ", ")}
	_, hasSending := is[PodNode]
	_, hasReceiving := is[NodePod]
	switch {
	case is[Host]:
		p.underlay = true
	case !hasSending || !hasReceiving:
	case is[PodNode] && !is[NodePod]:
		p.node = from
	case is[NodePod] && !is[PodNode]:
		p.node = to
	}
	return p
}

// of returns the place as the words "on node-1" or "between node-1 and node-2".
func (c *Case) of(p place, back bool) string {
	from, to := c.ends(back)
	switch {
	case p.node != "":
		return "on " + p.node
	case p.underlay:
		return "on the way from " + from + " to " + to + ", which the nodes' own traffic takes"
	}
	return "between the pods of " + from + " and of " + to
}

// carriers returns the devices that carry the pods' packets in that direction, on both
// nodes and in both pods, in the order of the way as far as it is known.
func (c *Case) carriers(back bool) []Hop {
	p := c.path(PodPod, back)
	from, to := c.ends(back)
	fromPod, toPod := c.pods(back)
	hops := c.hops(p, fromPod, from, to, toPod)
	rank := func(h Hop) int {
		kind := ""
		if d := c.snapshot(h.Endpoint).device(h.Device); d != nil {
			kind = d.Kind
		}
		tunnel := slices.Contains(tunnels, kind)
		switch {
		case h.Endpoint == from && !h.Sent, h.Endpoint == to && !h.Sent && !tunnel && kind != "bridge":
			return 0
		case h.Endpoint == from && kind == "bridge", h.Endpoint == to && tunnel:
			return 1
		case h.Endpoint == from && tunnel, h.Endpoint == to && !h.Sent:
			return 2
		}
		return 3
	}
	order := []string{fromPod, from, to, toPod}
	slices.SortStableFunc(hops, func(a, b Hop) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Endpoint), slices.Index(order, b.Endpoint)), cmp.Compare(rank(a), rank(b)))
	})
	return hops
}

// on returns the carriers of one node in either direction, each device once.
func (c *Case) on(node string) (devices []string) {
	for _, back := range directions {
		for _, h := range c.carriers(back) {
			if h.Endpoint == node && !slices.Contains(devices, h.Device) {
				devices = append(devices, h.Device)
			}
		}
	}
	return devices
}

// peer returns the other end of a pair of nodes.
func (c *Case) peer(node string) *Snapshot {
	for _, other := range c.nodes() {
		if other.Endpoint != node {
			return other
		}
	}
	return nil
}

// nodeOf returns the node on which an endpoint is.
func (c *Case) nodeOf(endpoint string) string {
	if s := c.snapshot(endpoint); s.Node != "" {
		return s.Node
	}
	return endpoint
}

func percent(share float64) string { return fmt.Sprintf("%.3g %%", 100*share) }

func count(n float64) string { return fmt.Sprintf("%.0f", n) }

func seconds(s float64) string {
	switch {
	case s < 1e-3:
		return fmt.Sprintf("%.0f µs", s*1e6)
	case s < 1:
		return fmt.Sprintf("%.3g ms", s*1e3)
	}
	return fmt.Sprintf("%.3g s", s)
}

func bitrate(b float64) string {
	switch {
	case b >= 1e9:
		return fmt.Sprintf("%.3g Gbit/s", b/1e9)
	case b >= 1e6:
		return fmt.Sprintf("%.3g Mbit/s", b/1e6)
	}
	return fmt.Sprintf("%.3g kbit/s", b/1e3)
}
