//go:build linux

package tunnel

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// IPIP makes an IP in IP tunnel (RFC 2003). Each node has one device with a /32 address, and a
// route on that device to every other node's pods through the other node's own address, which
// becomes the outer destination.
//
// Parameters: device is the device's name. local says whether the piece makes the device with
// the node's address (flannel); if not, it uses tunl0, the namespace's fallback device, which
// the kernel makes itself (Calico).
var IPIP = wire.Transport{
	Name:    "ipip",
	Summary: "one IP in IP device a node; a route through it to every peer's pods",
	Params:  []string{"device", "local"},
	Setup: func(ctx context.Context, f *wire.Fabric, p wire.Params) error {
		device := p.Text("device", "ipip1")
		return f.OnUplinks(ctx, func(n *wire.Node, h *netlink.Handle, _ netlink.Link) error {
			attrs := netlink.NewLinkAttrs()
			attrs.Name = device
			link := &netlink.Iptun{LinkAttrs: attrs}
			if p.Bool("local", true) {
				link.Local = n.Addr.Addr().AsSlice()
			}
			// The fallback device exists as soon as the module is loaded.
			if err := h.LinkAdd(link); err != nil && !errors.Is(err, unix.EEXIST) {
				return fmt.Errorf("ipip: %s: %w; see `cnibench probe`", device, err)
			}
			made, err := h.LinkByName(device)
			if err != nil {
				return fmt.Errorf("ipip: %s: %w", device, err)
			}
			if err := h.LinkSetMTU(made, f.PodMTU()); err != nil {
				return fmt.Errorf("ipip: MTU of %s: %w", device, err)
			}
			if err := h.AddrAdd(made, &netlink.Addr{IPNet: wire.IPNet(netip.PrefixFrom(tunnelAddr(n), 32))}); err != nil {
				return fmt.Errorf("ipip: address of %s: %w", device, err)
			}
			if err := h.LinkSetUp(made); err != nil {
				return fmt.Errorf("ipip: %s: %w", device, err)
			}
			for _, peer := range f.Nodes {
				if peer == n {
					continue
				}
				err := h.RouteAdd(&netlink.Route{
					LinkIndex: made.Attrs().Index, Dst: wire.IPNet(peer.PodCIDR), Gw: peer.Addr.Addr().AsSlice(), Flags: int(netlink.FLAG_ONLINK),
				})
				if err != nil {
					return fmt.Errorf("ipip: route to the pods of %s: %w", peer.Name, err)
				}
			}
			return nil
		})
	},
}
