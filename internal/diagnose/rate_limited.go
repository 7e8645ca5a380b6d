package diagnose

import (
	"fmt"
	"slices"
)

// slowsDown are the queueing disciplines that hold packets back by design.
func slowsDown(q Qdisc) bool { return q.Rate > 0 && q.Kind != "fq" && q.Kind != "mq" }

// rateLimited: a queueing discipline, a policer or a bandwidth annotation limits a device.
func rateLimited() Cause {
	return Cause{
		ID: "rate-limited", Summary: "a device of the path sends no faster than a rate",
		Predicts: "goodput flat at the rate in one direction, whatever the number of connections; round trips under load rise",
		Remedy:   "Take the limit away, or accept it: tc qdisc show; annotation kubernetes.io/egress-bandwidth.",
		Source:   "k8s#90838, containernetworking/plugins#609; tc-tbf(8)",
		look: func(c *Case) Answer {
			a := Answer{Excluded: "no device of the path has a queueing discipline with a rate"}
			seen := false
			for i := range c.Snapshots {
				s := &c.Snapshots[i]
				seen = seen || s.Qdiscs != nil
				a.Claims = append(a.Claims, claimAnnotations(c, s)...)
				for _, q := range s.Qdiscs {
					if x, ok := limit(c, s, q); ok {
						a.Claims = append(a.Claims, x)
					}
				}
			}
			if !seen {
				a.Excluded = ""
			}
			return a
		},
	}
}

func limit(c *Case, s *Snapshot, q Qdisc) (Claim, bool) {
	if !slowsDown(q) {
		return Claim{}, false
	}
	up := c.uplink(s.Endpoint)
	underlay := up != nil && up.Name == q.Device && !s.Pod
	for _, back := range directions {
		hops := c.carriers(back)
		if underlay {
			hops = append(hops, c.hops(c.path(Host, back), s.Endpoint)...)
		}
		if !slices.ContainsFunc(hops, func(h Hop) bool { return h.Endpoint == s.Endpoint && h.Device == q.Device && h.Sent }) {
			continue
		}
		from, _ := c.ends(back)
		if !s.Pod && c.nodeOf(s.Endpoint) != from && underlay {
			continue
		}
		x := Claim{State: Suspected, Node: c.nodeOf(s.Endpoint), Device: q.Device, Direction: c.direction(back), underlay: underlay, Explains: 0.5, certain: true,
			Text:     fmt.Sprintf("%s of %s sends at most %s (%s)", q.Device, s.Endpoint, bitrate(q.Rate), q.Kind),
			Evidence: []Evidence{{"tc qdisc", q.Kind + " rate " + bitrate(q.Rate), s.Endpoint + " " + q.Device}},
			Next:     fmt.Sprintf("tc -s qdisc show dev %s; tc qdisc del dev %s root   on %s, if nobody needs the limit", q.Device, q.Device, s.Endpoint),
		}
		if s.Pod {
			x.Pod = s.Endpoint
		}
		if i := slices.IndexFunc(s.After, func(later Qdisc) bool { return later.Device == q.Device && later.Kind == q.Kind }); i >= 0 {
			if over := s.After[i].Overlimits - q.Overlimits; over > 0 {
				x.State, x.Explains = Supported, 0.9
				x.Evidence = append(x.Evidence, Evidence{"overlimits", "+" + count(over), s.Endpoint + " " + q.Device})
			}
		}
		if got, ok := c.figure(PodPod, back, Bulk, Goodput); ok {
			x.Evidence = append(x.Evidence, Evidence{"goodput of pods", bitrate(got), c.direction(back)})
			if got > 0.6*q.Rate && got < 1.05*q.Rate {
				x.State, x.Explains = Supported, 0.95
			}
		}
		if c.MaxRate > 0 && q.Rate > c.MaxRate && x.State == Suspected {
			x.Text += fmt.Sprintf("; whether that slows pods was not measured, since bulk was held to %s, which is less", bitrate(c.MaxRate))
			x.Next = fmt.Sprintf("cnibench diagnose --max-rate %s: measures above the limit; by hand: ", formatRate(1.5*q.Rate)) + x.Next
		}
		return x, true
	}
	return Claim{}, false
}

// formatRate returns a rate as --max-rate takes it.
func formatRate(bits float64) string { return fmt.Sprintf("%.0fM", bits/1e6) }

// atLimit is the share of its limit from which on a pod is held by it.
const atLimit = 0.8

// claimAnnotations returns what bandwidth annotations of the user's pod claim. The rates are the
// pod's own, so that they explain something only while it sends or receives that much.
func claimAnnotations(c *Case, s *Snapshot) (list []Claim) {
	for _, way := range []struct {
		rate          float64
		what, counter string
	}{{s.Egress, "egress", "container_network_transmit_bytes"}, {s.Ingress, "ingress", "container_network_receive_bytes"}} {
		if way.rate <= 0 {
			continue
		}
		annotation := "kubernetes.io/" + way.what + "-bandwidth"
		x := Claim{State: Suspected, Node: s.Node, Pod: s.Endpoint, Explains: 0.4, certain: true,
			Text:     fmt.Sprintf("%s of %s is limited to %s by its annotation", way.what, s.Endpoint, bitrate(way.rate)),
			Evidence: []Evidence{{"annotation " + annotation, bitrate(way.rate), s.Endpoint}},
			Next:     fmt.Sprintf("Raise or remove %s in the pod's template, if nobody needs the limit", annotation)}
		for i := range c.Paths {
			p := &c.Paths[i]
			probe := p.Probes[Idle]
			if bytes, ok := probe.growth(s.Endpoint, way.counter); ok && p.Kind == Yours && probe.Seconds > 0 {
				rate := 8 * bytes / probe.Seconds
				x.Evidence = append(x.Evidence, Evidence{way.counter, bitrate(rate), s.Endpoint})
				if rate > atLimit*way.rate {
					x.State, x.Explains = Supported, 0.95
				}
			}
		}
		list = append(list, x)
	}
	return list
}
