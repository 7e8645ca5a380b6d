//go:build linux

package ovs

import (
	"context"
	"fmt"

	"github.com/google/nftables/expr"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// OVNServiceNAT is for OVN without load balancers: packets for Services leave
// OVN by the client's node, whose kube-proxy sends them back to a pod. Under the
// node's address there the answers come back the same way; OVN would take them
// straight to the client, which knows nothing of the pod behind the Service.
var OVNServiceNAT = wire.Transport{
	Name:    "ovn-service-nat",
	Summary: "what a node sends from pods to pods goes under its own address (Kube-OVN's \"nat service traffic\", for kube-proxy)",
	Setup: func(ctx context.Context, f *wire.Fabric, _ wire.Params) error {
		return f.Parallel(ctx, func(_ context.Context, n *wire.Node) error {
			exprs := append(wire.MatchAddr(wire.SourceAddr, f.PodNetwork, expr.CmpOpEq), wire.MatchAddr(wire.DestinationAddr, f.PodNetwork, expr.CmpOpEq)...)
			if err := wire.SourceNAT(n, "cnibench-ovn", append(exprs, &expr.Masq{})); err != nil {
				return fmt.Errorf("ovn-service-nat: %w", err)
			}
			return nil
		})
	},
}
