package diagnose

import (
	"fmt"
	"slices"
)

// minDelay is the least time by which the pods' round trip must exceed the nodes' to be
// called a delay, s.
const minDelay = 1e-3

// delay: something holds packets back.
func delay() Cause {
	return Cause{
		ID: "delay", Summary: "packets are held back, of the underlay or of the pod path alone",
		Predicts: "round trips longer by the same time whatever the size; bulk over one connection slower by its window",
		Remedy:   "Take the delay away: tc qdisc show.",
		Source:   "tc-netem(8)",
		look: func(c *Case) Answer {
			a := Answer{}
			for i := range c.Snapshots {
				s := &c.Snapshots[i]
				for _, q := range s.Qdiscs {
					if q.Delay <= 0 {
						continue
					}
					for _, back := range directions {
						on := c.carriers(back)
						if !slices.ContainsFunc(on, func(h Hop) bool { return h.Endpoint == s.Endpoint && h.Device == q.Device && h.Sent }) {
							continue
						}
						up := c.uplink(s.Endpoint)
						x := Claim{State: Supported, Node: c.nodeOf(s.Endpoint), Device: q.Device, Direction: c.direction(back), Explains: 0.9,
							underlay: up != nil && up.Name == q.Device,
							Text:     fmt.Sprintf("%s of %s holds every packet back for %s (%s)", q.Device, s.Endpoint, seconds(q.Delay), q.Kind),
							Evidence: []Evidence{{"tc qdisc", q.Kind + " delay " + seconds(q.Delay), s.Endpoint + " " + q.Device}},
							Next:     fmt.Sprintf("tc qdisc del dev %s root   on %s", q.Device, s.Endpoint)}
						if p50, ok := c.figure(PodPod, back, RTT, P50); ok {
							x.Evidence = append(x.Evidence, Evidence{"round trip of pods", seconds(p50), c.direction(back)})
							if p50 < q.Delay/2 {
								x.State = Suspected
							}
						}
						a.Claims = append(a.Claims, x)
						break
					}
				}
			}
			for _, back := range directions {
				pods, ok := c.figure(PodPod, back, RTT, P50)
				nodes, ok2 := c.figure(Host, back, RTT, P50)
				if !ok || !ok2 {
					continue
				}
				a.Excluded = fmt.Sprintf("the pods' round trip is %s, the nodes' %s", seconds(pods), seconds(nodes))
				if pods-nodes < minDelay || !c.slowRTT(back) || len(a.Claims) > 0 || back {
					continue
				}
				p := c.locate(back, func(kind string) (bool, bool) {
					v, ok := c.figure(kind, back, RTT, P50)
					return v-nodes > (pods-nodes)/2, ok
				})
				a.Claims = append(a.Claims, Claim{State: Suspected, Node: p.node, Direction: c.direction(back), Explains: 0.3,
					Text:     fmt.Sprintf("every packet of pods takes %s longer %s", seconds(pods-nodes), c.of(p, back)),
					Evidence: []Evidence{{"round trip of pods", seconds(pods), c.direction(back)}, {"of nodes", seconds(nodes), c.direction(back)}, {"rungs", p.rungs, c.direction(back)}}})
			}
			return a
		},
	}
}
