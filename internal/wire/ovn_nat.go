//go:build linux

package wire

import (
	"context"
	"fmt"

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
			exprs := append(matchAddr(saddr, f.PodNetwork, expr.CmpOpEq), matchAddr(daddr, f.PodNetwork, expr.CmpOpEq)...)
			if err := sourceNAT(n, "cnibench-ovn", append(exprs, &expr.Masq{})); err != nil {
				return fmt.Errorf("ovn-service-nat: %w", err)
			}
			return nil
		})
	},
}
