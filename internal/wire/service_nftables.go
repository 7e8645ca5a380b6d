//go:build linux

package wire

import (
	"context"
	"fmt"

	"github.com/cnibench/cnibench/internal/host"
)

// kubeProxyNFTables writes the table that kube-proxy's nftables mode writes: a
// packet for a Service finds it in a map.
var kubeProxyNFTables = Service{
	Name:     "kube-proxy-nftables",
	Summary:  "the table of kube-proxy's nftables mode: one look-up in a map of all Services by the first packet of a connection",
	Programs: []host.Program{{Name: "nft", Package: "nftables"}},
	Setup: func(ctx context.Context, f *Fabric, _ Params) (Proxy, error) {
		return nftablesProxy{}, nftablesProxy{}.Sync(ctx, f, nil)
	},
}

type nftablesProxy struct{ tracked }

// Sync implements Proxy.
func (nftablesProxy) Sync(ctx context.Context, f *Fabric, table []ServicePort) error {
	err := f.parallel(ctx, func(ctx context.Context, n *Node) error {
		return n.feed(ctx, nftablesRules(table, f.PodNetwork, n.Addr.Addr()), nil, "nft", "-f", "-")
	})
	if err != nil {
		return fmt.Errorf("kube-proxy-nftables: %w", err)
	}
	return nil
}
