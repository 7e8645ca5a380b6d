//go:build linux

package plain

import (
	"context"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// Routes is direct routing: every node has a route to every other node's pods
// through that node's own address. It needs nodes on one L2 segment.
var Routes = wire.Transport{
	Name:    "routes",
	Summary: "a route per node, through that node's address (flannel host-gw, Calico without encapsulation)",
	Setup:   func(ctx context.Context, f *wire.Fabric, _ wire.Params) error { return f.DirectRoutes(ctx) },
}
