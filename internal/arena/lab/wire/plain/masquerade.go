//go:build linux

package plain

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/google/nftables/expr"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// Masquerade hides pods that talk to the world outside the pod network behind
// their node's address. Traffic between pods is left alone, yet every packet
// that a node forwards is tracked from then on (nf_conntrack), as on every
// node of a real cluster.
var Masquerade = wire.Transport{
	Name:    "masquerade",
	Summary: "pods leave the pod network under their node's address; turns connection tracking on (flannel --ip-masq, Calico natOutgoing)",
	Setup: func(ctx context.Context, f *wire.Fabric, _ wire.Params) error {
		for _, n := range f.Nodes {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := masqueradeNode(n, f.PodNetwork); err != nil {
				return fmt.Errorf("%s: masquerade: %w", n.Name, err)
			}
		}
		return nil
	},
}

func masqueradeNode(n *wire.Node, pods netip.Prefix) error {
	exprs := append(wire.MatchAddr(wire.SourceAddr, pods, expr.CmpOpEq), wire.MatchAddr(wire.DestinationAddr, pods, expr.CmpOpNeq)...)
	// flannel leaves multicast alone (pkg/iptables/iptables.go).
	exprs = append(exprs, wire.MatchAddr(wire.DestinationAddr, netip.MustParsePrefix("224.0.0.0/4"), expr.CmpOpNeq)...)
	return wire.SourceNAT(n, "cnibench", append(exprs, &expr.Masq{FullyRandom: true}))
}
