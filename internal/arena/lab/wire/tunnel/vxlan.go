//go:build linux

// Package tunnel holds the pieces that encapsulate packets between nodes: VXLAN, IPIP,
// WireGuard, ESP and flannel's own daemon. Next: ipip.go.
package tunnel

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// VXLAN makes an overlay without learning. Every node has one VXLAN device with a /32 address,
// and for every other node a route, a permanent neighbour entry and a forwarding entry, as the
// agents of flannel and Calico write them. With cross-subnet, a node of the same subnet is
// reached by a route through its own address instead. With a mark, only packets that carry it
// use the device, by a rule and a table of their own (Cilium's IPsec). overhead is the
// difference between the underlay's MTU and the device's, in bytes; by default the
// contender's.
var VXLAN = wire.Transport{
	Name:    "vxlan",
	Summary: "one VXLAN device a node; routes, neighbours and forwarding entries written for every peer",
	Params:  []string{"device", "vni", "port", "learning", "tx-checksum", "cross-subnet", "overhead", "mark", "mark-mask", "table", "priority"},
	Setup: func(ctx context.Context, f *wire.Fabric, p wire.Params) error {
		macs := map[*wire.Node]net.HardwareAddr{}
		device := p.Text("device", "vxlan1")
		err := f.OnUplinks(ctx, func(n *wire.Node, h *netlink.Handle, uplink netlink.Link) error {
			attrs := netlink.NewLinkAttrs()
			attrs.Name, attrs.MTU, attrs.HardwareAddr = device, f.MTU-p.Int("overhead", f.Overhead), tunnelMAC(n)
			link := &netlink.Vxlan{
				LinkAttrs:    attrs,
				VxlanId:      p.Int("vni", 1),
				VtepDevIndex: uplink.Attrs().Index,
				SrcAddr:      n.Addr.Addr().AsSlice(),
				Port:         p.Int("port", 4789),
				Learning:     p.Bool("learning", false),
			}
			if err := h.LinkAdd(link); err != nil {
				return fmt.Errorf("vxlan: %s: %w; see `cnibench probe`", device, err)
			}
			if !p.Bool("tx-checksum", true) {
				if err := wire.TxChecksumOff(n, device); err != nil {
					return err
				}
			}
			if err := h.AddrAdd(link, &netlink.Addr{IPNet: wire.IPNet(netip.PrefixFrom(tunnelAddr(n), 32))}); err != nil {
				return fmt.Errorf("vxlan: address of %s: %w", device, err)
			}
			macs[n] = attrs.HardwareAddr
			return h.LinkSetUp(link)
		})
		if err != nil {
			return err
		}
		cross, mark, table := p.Bool("cross-subnet", false), p.Int("mark", 0), 0
		if mark != 0 {
			table = p.Int("table", 200)
		}
		return f.OnUplinks(ctx, func(n *wire.Node, h *netlink.Handle, uplink netlink.Link) error {
			link, err := h.LinkByName(device)
			if err != nil {
				return err
			}
			for _, peer := range f.Nodes {
				if peer == n {
					continue
				}
				if cross && n.Addr.Masked() == peer.Addr.Masked() {
					if err := wire.RouteVia(h, uplink, peer); err != nil {
						return err
					}
					continue
				}
				if err := vxlanPeer(h, link.Attrs().Index, peer, macs[peer], table); err != nil {
					return fmt.Errorf("vxlan: peer %s: %w", peer.Name, err)
				}
			}
			if mark == 0 {
				return nil
			}
			if err := h.RuleAdd(markedRule(mark, p.Int("mark-mask", mark), table, p.Int("priority", 1))); err != nil {
				return fmt.Errorf("vxlan: routing rule: %w", err)
			}
			return nil
		})
	},
}

// vxlanPeer writes the device's route to the peer's pods and the peer's neighbour and forwarding
// entries. Table 0 is table main.
func vxlanPeer(h *netlink.Handle, device int, peer *wire.Node, mac net.HardwareAddr, table int) error {
	via := net.IP(tunnelAddr(peer).AsSlice())
	if err := h.NeighSet(&netlink.Neigh{LinkIndex: device, State: netlink.NUD_PERMANENT, Type: unix.RTN_UNICAST, IP: via, HardwareAddr: mac}); err != nil {
		return fmt.Errorf("neighbour: %w", err)
	}
	err := h.NeighSet(&netlink.Neigh{
		LinkIndex: device, Family: unix.AF_BRIDGE, Flags: netlink.NTF_SELF, State: netlink.NUD_PERMANENT,
		IP: peer.Addr.Addr().AsSlice(), HardwareAddr: mac,
	})
	if err != nil {
		return fmt.Errorf("forwarding entry: %w", err)
	}
	err = h.RouteAdd(&netlink.Route{
		LinkIndex: device, Dst: wire.IPNet(peer.PodCIDR), Gw: via, Scope: netlink.SCOPE_UNIVERSE, Flags: int(netlink.FLAG_ONLINK),
		Table: table,
	})
	if err != nil {
		return fmt.Errorf("route: %w", err)
	}
	return nil
}

// tunnelAddr returns the address of the node's VXLAN device: the network address
// of its pods, which no pod gets.
func tunnelAddr(n *wire.Node) netip.Addr { return n.PodCIDR.Masked().Addr() }

// tunnelMAC returns a locally administered MAC address, different for each node.
func tunnelMAC(n *wire.Node) net.HardwareAddr {
	return net.HardwareAddr{0x66, 0xcb, 0, 0, byte(n.Index >> 8), byte(n.Index)}
}
