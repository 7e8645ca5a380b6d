//go:build linux

package plain

import (
	"context"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// vpcRouteLimit is how many routes a VPC route table held when the 2016 study
// was made, and still does unless a higher quota is granted.
const vpcRouteLimit = 50

// VPCRoutes writes every node's pod network into the VPC router's table, as
// flannel's aws-vpc backend does: the nodes themselves know only their
// default gateway.
var VPCRoutes = wire.Transport{
	Name:     "vpc-routes",
	Summary:  "a route per node in the VPC router's table (flannel aws-vpc)",
	MaxNodes: vpcRouteLimit,
	Limit:    "a VPC route table holds 50 entries, one a node; flannel-host-gw and flannel-vxlan have no such limit",
	Setup: func(ctx context.Context, f *wire.Fabric, _ wire.Params) error {
		if f.Router == nil {
			return errors.New("vpc-routes: the underlay has no VPC router; run with --underlay vpc or auto")
		}
		if len(f.Nodes) > vpcRouteLimit {
			return fmt.Errorf("vpc-routes: no entry left in the route table for %s: it holds %d", f.Nodes[vpcRouteLimit].Name, vpcRouteLimit)
		}
		h, err := f.Router.Box.Netlink()
		if err != nil {
			return err
		}
		defer h.Close()
		for _, n := range f.Nodes {
			if err := ctx.Err(); err != nil {
				return err
			}
			port, err := h.LinkByName(wire.RouterPort(n))
			if err != nil {
				return fmt.Errorf("vpc router: %s: %w", wire.RouterPort(n), err)
			}
			if err := h.RouteAdd(&netlink.Route{LinkIndex: port.Attrs().Index, Dst: wire.IPNet(n.PodCIDR), Gw: n.Addr.Addr().AsSlice()}); err != nil {
				return fmt.Errorf("vpc router: route to the pods of %s: %w", n.Name, err)
			}
		}
		return nil
	},
}
