package diagnose

import "fmt"

// checksumErrors: packets arrive with wrong checksums.
func checksumErrors() Cause {
	return Cause{
		ID: "checksum-errors", Summary: "packets arrive with wrong checksums",
		Predicts: "connections stall or fail over that node, small packets too; nothing is lost on the wire",
		Proof:    "tx-checksum-ip-generic of the sender's tunnel, off",
		Remedy:   "Turn the transmit checksum offload of the sender's tunnel or uplink off; mend the driver.",
		Source:   "talos-argocd#1953, calico#3145, k8s#88986; /proc/net/snmp InCsumErrors",
		look: func(c *Case) Answer {
			a := Answer{}
			for i := range c.Snapshots {
				s := &c.Snapshots[i]
				bad := 0.0
				for _, family := range []string{"node_netstat_Tcp_InCsumErrors", "node_netstat_Udp_InCsumErrors", "node_netstat_Icmp_InCsumErrors"} {
					v, ok := c.growthOver(s.Endpoint, family)
					if ok {
						a.Excluded = "no checksum was wrong"
					}
					bad += v
				}
				if bad < 3 {
					continue
				}
				x := Claim{State: Supported, Node: s.Node, Explains: 0.8, underlay: !s.Pod,
					Text:     fmt.Sprintf("%s got %s packets with a wrong checksum", s.Endpoint, count(bad)),
					Evidence: []Evidence{{"InCsumErrors", "+" + count(bad), s.Endpoint}}}
				if s.Pod {
					x.Pod = s.Endpoint
				}
				if peer := c.peer(s.Node); peer != nil {
					x.Direction = peer.Endpoint + " → " + s.Node
					if _, tunnel := c.transport(); tunnel != "" {
						x.Next = fmt.Sprintf("ethtool -K %s tx-checksum-ip-generic off   on %s, which sends them", tunnel, peer.Endpoint)
					}
				}
				a.Claims = append(a.Claims, x)
			}
			return a
		},
	}
}
