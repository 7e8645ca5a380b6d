//go:build linux

package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
)

// OnUplinks runs fn for every node, one after the other, with a netlink socket in
// the node and the node's uplink.
func (f *Fabric) OnUplinks(ctx context.Context, fn func(n *Node, h *netlink.Handle, uplink netlink.Link) error) error {
	for _, n := range f.Nodes {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := n.OnUplink(fn); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return nil
}

// OnUplink runs fn with a netlink socket in the node and the node's uplink.
func (n *Node) OnUplink(fn func(n *Node, h *netlink.Handle, uplink netlink.Link) error) error {
	return n.OnLink(UplinkName, func(h *netlink.Handle, uplink netlink.Link) error { return fn(n, h, uplink) })
}

// OnLink runs fn with a netlink socket in the node and the interface of that name.
func (n *Node) OnLink(name string, fn func(h *netlink.Handle, link netlink.Link) error) error {
	h, err := n.NS.Netlink()
	if err != nil {
		return err
	}
	defer h.Close()
	link, err := h.LinkByName(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return fn(h, link)
}

// IPNet returns the prefix in the form that package netlink takes.
func IPNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// GatewayOf returns the first address of the subnet.
func GatewayOf(p netip.Prefix) netip.Addr { return p.Masked().Addr().Next() }

// DirectRoutes gives every node a route to every other node's pods through that
// node's own address.
func (f *Fabric) DirectRoutes(ctx context.Context) error {
	return f.OnUplinks(ctx, func(n *Node, h *netlink.Handle, uplink netlink.Link) error {
		for _, peer := range f.Nodes {
			if peer == n {
				continue
			}
			if err := RouteVia(h, uplink, peer); err != nil {
				return err
			}
		}
		return nil
	})
}

// RouteVia adds a route to the peer's pods through the peer's own address.
func RouteVia(h *netlink.Handle, uplink netlink.Link, peer *Node) error {
	err := h.RouteAdd(&netlink.Route{LinkIndex: uplink.Attrs().Index, Dst: IPNet(peer.PodCIDR), Gw: peer.Addr.Addr().AsSlice()})
	if err != nil {
		return fmt.Errorf("route to the pods of %s through %s: %w; direct routes need nodes on one switch", peer.Name, peer.Addr.Addr(), err)
	}
	return nil
}

// TxChecksumOff turns the device's transmit checksum offload off, as products
// do around kernel bugs; segmentation offload goes with it.
func TxChecksumOff(n *Node, device string) error {
	err := n.NS.Do(func() error {
		e, err := ethtool.NewEthtool()
		if err != nil {
			return err
		}
		defer e.Close()
		return e.Change(device, map[string]bool{"tx-checksum-ip-generic": false})
	})
	if err != nil {
		return fmt.Errorf("transmit checksums of %s: %w", device, err)
	}
	return nil
}

// IfPresent returns nil if err says that the kernel lacks a sysctl, else err.
func IfPresent(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
