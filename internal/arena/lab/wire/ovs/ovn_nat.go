//go:build linux

package ovs

import (
	"context"
	"fmt"

	"github.com/google/nftables/expr"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// OVNServiceNAT serves OVN without load balancers. Packets for Services leave OVN through the
// client's node; its kube-proxy sends them back to a pod. The node masquerades them with its own
// address, so that answers come back through it. Otherwise OVN would send answers straight to
// the client, which does not know the pod behind the Service.
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
