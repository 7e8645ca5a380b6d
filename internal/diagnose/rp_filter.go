package diagnose

import (
	"fmt"
	"strings"
)

// rpFilter: packets are dropped because their source would be reached by another device.
func rpFilter() Cause {
	return Cause{
		ID: "rp-filter", Summary: "the reverse-path filter drops packets",
		Predicts: "one direction or one kind of path dead or lossy; round trips by one way unharmed",
		Remedy:   "sysctl -w net.ipv4.conf.DEVICE.rp_filter=0 (or 2), or make the routes symmetric.",
		Source:   "cilium#13130, #19761; /proc/net/netstat IPReversePathFilter",
		look: func(c *Case) Answer {
			a := Answer{}
			for i := range c.Snapshots {
				s := &c.Snapshots[i]
				n, ok := c.growthOver(s.Endpoint, "node_netstat_TcpExt_IPReversePathFilter")
				if ok {
					a.Excluded = "the reverse-path filter dropped nothing"
				}
				if n < 3 {
					continue
				}
				var set []string
				for key, v := range s.Sysctls {
					if strings.HasSuffix(key, ".rp_filter") && v != "0" {
						set = append(set, key+"="+v)
					}
				}
				x := Claim{State: Supported, Node: s.Node, Explains: 0.8, underlay: !s.Pod,
					Text:     fmt.Sprintf("the reverse-path filter of %s dropped %s packets", s.Endpoint, count(n)),
					Evidence: []Evidence{{"IPReversePathFilter", "+" + count(n), s.Endpoint}}}
				if len(set) > 0 {
					x.Evidence = append(x.Evidence, Evidence{"rp_filter", set[0], s.Endpoint})
				}
				if peer := c.peer(s.Node); peer != nil {
					x.Direction = peer.Endpoint + " → " + s.Node
				}
				a.Claims = append(a.Claims, x)
			}
			return a
		},
	}
}
