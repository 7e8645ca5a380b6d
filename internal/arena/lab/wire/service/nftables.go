//go:build linux

package service

import (
	"context"
	"fmt"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// NFTables writes the table that kube-proxy's nftables mode writes: a
// packet for a Service finds it in a map.
var NFTables = wire.Service{
	Name:    "kube-proxy-nftables",
	Summary: "the table of kube-proxy's nftables mode: one look-up in a map of all Services by the first packet of a connection",
	Setup: func(ctx context.Context, f *wire.Fabric, _ wire.Params) (wire.Proxy, error) {
		return nftablesProxy{}, nftablesProxy{}.Sync(ctx, f, nil)
	},
}

type nftablesProxy struct{ wire.Tracked }

// Sync implements Proxy.
func (nftablesProxy) Sync(ctx context.Context, f *wire.Fabric, table []wire.ServicePort) error {
	err := f.Parallel(ctx, func(ctx context.Context, n *wire.Node) error {
		return n.Feed(ctx, nftablesRules(table, f.PodNetwork, n.Addr.Addr()), nil, "nft", "-f", "-")
	})
	if err != nil {
		return fmt.Errorf("kube-proxy-nftables: %w", err)
	}
	return nil
}
