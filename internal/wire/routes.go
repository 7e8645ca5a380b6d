//go:build linux

package wire

import (
	"context"
	"fmt"

	"github.com/vishvananda/netlink"
)

// routes is direct routing: every node has a route to every other node's pods
// through that node's own address. It needs nodes on one L2 segment.
var routes = Transport{
	Name:    "routes",
	Summary: "a route per node, through that node's address (flannel host-gw, Calico without encapsulation)",
	Setup: func(ctx context.Context, f *Fabric, _ Params) error {
		return f.onEach(ctx, func(n *Node, h *netlink.Handle, uplink netlink.Link) error {
			for _, peer := range f.Nodes {
				if peer == n {
					continue
				}
				if err := routeVia(h, uplink, peer); err != nil {
					return err
				}
			}
			return nil
		})
	},
}

// routeVia is the route to the peer's pods through the peer's own address.
func routeVia(h *netlink.Handle, uplink netlink.Link, peer *Node) error {
	err := h.RouteAdd(&netlink.Route{LinkIndex: uplink.Attrs().Index, Dst: ipNet(peer.PodCIDR), Gw: peer.Addr.Addr().AsSlice()})
	if err != nil {
		return fmt.Errorf("route to the pods of %s through %s: %w; direct routes need nodes on one switch", peer.Name, peer.Addr.Addr(), err)
	}
	return nil
}
