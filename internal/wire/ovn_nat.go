//go:build linux

package wire

import (
	"context"
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
)

// ovnServiceNAT is for OVN without load balancers: packets for Services leave
// OVN by the client's node, whose kube-proxy sends them back to a pod. Under the
// node's address there the answers come back the same way; OVN would take them
// straight to the client, which knows nothing of the pod behind the Service.
var ovnServiceNAT = Transport{
	Name:    "ovn-service-nat",
	Summary: "what a node sends from pods to pods goes under its own address (Kube-OVN's \"nat service traffic\", for kube-proxy)",
	Setup: func(ctx context.Context, f *Fabric, _ Params) error {
		return f.parallel(ctx, func(_ context.Context, n *Node) error {
			c, err := nftables.New(nftables.WithNetNSFd(n.NS.FD()))
			if err != nil {
				return err
			}
			table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "cnibench-ovn"})
			chain := c.AddChain(&nftables.Chain{
				Name: "postrouting", Table: table, Type: nftables.ChainTypeNAT,
				Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource,
			})
			const saddr, daddr = 12, 16 // offsets in the IPv4 header (RFC 791)
			exprs := append(matchAddr(saddr, f.PodNetwork, expr.CmpOpEq), matchAddr(daddr, f.PodNetwork, expr.CmpOpEq)...)
			c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: append(exprs, &expr.Masq{})})
			if err := c.Flush(); err != nil {
				return fmt.Errorf("ovn-service-nat: %w", err)
			}
			return nil
		})
	},
}
