//go:build linux

// Package underlay joins the nodes of a lab: by a switch or by a VPC router, over
// links of a line rate, or by a guest's network devices. Next: shape.go, offload.go, nic.go.
package underlay

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
	"github.com/cnibench/cnibench/internal/linux"
	"github.com/cnibench/cnibench/internal/unit"
)

// Link says how the uplinks of an underlay are made.
type Link struct {
	MTU      int
	LineRate unit.BitRate // of each node, both directions; 0 is unlimited
	Wire     bool         // frames are at most an MTU, as on a cable; else as veth hands them over
}

// Switch joins the nodes by one learning bridge in a namespace of its own, as
// a top-of-rack switch would; their Addrs are of one subnet.
func Switch(box *linux.NetNS, nodes []*wire.Node, l Link) error {
	h, err := box.Netlink()
	if err != nil {
		return err
	}
	defer h.Close()
	// A switch filters nothing: without this, br_netfilter hands every frame
	// to the IP hooks. Kernels without br_netfilter have no such key.
	for _, key := range []string{"net.bridge.bridge-nf-call-iptables", "net.bridge.bridge-nf-call-ip6tables", "net.bridge.bridge-nf-call-arptables"} {
		if err := wire.IfPresent(box.SetSysctl(key, "0")); err != nil {
			return err
		}
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = "switch", l.MTU
	// With snooping the bridge would join a group of its own (RFC 4286, 224.0.0.106)
	// and send reports of that into measurements.
	bridge := &netlink.Bridge{LinkAttrs: attrs, MulticastSnooping: new(bool)}
	if err := h.LinkAdd(bridge); err != nil {
		return fmt.Errorf("switch: %w", err)
	}
	if err := h.LinkSetUp(bridge); err != nil {
		return fmt.Errorf("switch: %w", err)
	}
	for _, n := range nodes {
		port, err := cable(box, h, fmt.Sprintf("port%d", n.Index+1), n, l)
		if err != nil {
			return err
		}
		if err := h.LinkSetMaster(port, bridge); err != nil {
			return fmt.Errorf("switch: %w", err)
		}
	}
	return nil
}

// NewVPC joins the nodes by a router; each Addr is of a subnet of its own,
// whose first address is the router's and the node's default gateway.
func NewVPC(box *linux.NetNS, nodes []*wire.Node, l Link) (*wire.VPC, error) {
	h, err := box.Netlink()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	if err := box.SetSysctl("net.ipv4.ip_forward", "1"); err != nil {
		return nil, err
	}
	for _, n := range nodes {
		port, err := cable(box, h, wire.RouterPort(n), n, l)
		if err != nil {
			return nil, err
		}
		gateway := netip.PrefixFrom(n.Addr.Masked().Addr().Next(), n.Addr.Bits())
		if err := h.AddrAdd(port, &netlink.Addr{IPNet: wire.IPNet(gateway)}); err != nil {
			return nil, fmt.Errorf("vpc router: %w", err)
		}
		err = n.OnUplink(func(n *wire.Node, h *netlink.Handle, uplink netlink.Link) error {
			return h.RouteAdd(&netlink.Route{LinkIndex: uplink.Attrs().Index, Gw: gateway.Addr().AsSlice()})
		})
		if err != nil {
			return nil, fmt.Errorf("%s: default route: %w", n.Name, err)
		}
	}
	return &wire.VPC{Box: box}, nil
}

// cable makes a veth pair from the box to the node's uplink, with the node's
// address on it, and returns the box's end.
func cable(box *linux.NetNS, h *netlink.Handle, port string, n *wire.Node, l Link) (netlink.Link, error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = port, l.MTU
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: wire.UplinkName, PeerNamespace: netlink.NsFd(n.NS.FD())}
	if err := h.LinkAdd(pair); err != nil {
		return nil, fmt.Errorf("%s: cable to the underlay: %w", n.Name, err)
	}
	if err := h.LinkSetUp(pair); err != nil {
		return nil, fmt.Errorf("%s: cable to the underlay: %w", n.Name, err)
	}
	if err := uplink(n, l); err != nil {
		return nil, err
	}
	if l.Wire {
		if err := onWire(box, port); err != nil {
			return nil, err
		}
	}
	return pair, nil
}

// uplink gives the node's end of the link its MTU, address and rate.
func uplink(n *wire.Node, l Link) error {
	err := n.OnUplink(func(n *wire.Node, h *netlink.Handle, uplink netlink.Link) error {
		if err := h.LinkSetMTU(uplink, l.MTU); err != nil {
			return err
		}
		if err := h.AddrAdd(uplink, &netlink.Addr{IPNet: wire.IPNet(n.Addr)}); err != nil {
			return err
		}
		if err := h.LinkSetUp(uplink); err != nil {
			return err
		}
		return shape(h, uplink, l.LineRate)
	})
	if err != nil {
		return fmt.Errorf("%s: uplink: %w", n.Name, err)
	}
	if l.Wire {
		return onWire(n.NS, wire.UplinkName)
	}
	return nil
}
