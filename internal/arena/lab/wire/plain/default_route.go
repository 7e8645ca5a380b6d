//go:build linux

package plain

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// DefaultRoute gives every node a default route onto the underlay. A process in the
// node's own network needs one to reach a Service: the kernel looks for a route to the
// Service's address before kube-proxy's rules put the pod's address in its place.
var DefaultRoute = wire.Transport{
	Name:    "default-route",
	Summary: "a default route on every node, as machines have, without which the node itself reaches no Service",
	Setup: func(ctx context.Context, f *wire.Fabric, _ wire.Params) error {
		return f.OnUplinks(ctx, func(n *wire.Node, h *netlink.Handle, uplink netlink.Link) error {
			anywhere := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
			err := h.RouteAdd(&netlink.Route{LinkIndex: uplink.Attrs().Index, Dst: wire.IPNet(anywhere), Scope: netlink.SCOPE_LINK})
			if err != nil && !errors.Is(err, unix.EEXIST) { // the VPC's nodes have one
				return fmt.Errorf("default route of %s: %w", n.Name, err)
			}
			return nil
		})
	},
}
