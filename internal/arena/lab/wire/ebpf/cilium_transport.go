//go:build linux

package ebpf

import (
	"context"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// CiliumVXLAN makes Cilium's tunnel: one device without a fixed peer. The pods' programs set each
// packet's destination.
var CiliumVXLAN = wire.Transport{
	Name:    "ebpf-vxlan",
	Summary: "one VXLAN device a node that takes the peer from eBPF programs (Cilium's tunnel mode)",
	Params:  []string{"device", "port"},
	Setup: func(ctx context.Context, f *wire.Fabric, p wire.Params) error {
		c, err := ciliumOf(f, "ebpf-vxlan")
		if err != nil {
			return err
		}
		c.tunnel = true
		return f.OnUplinks(ctx, func(n *wire.Node, h *netlink.Handle, uplink netlink.Link) error {
			attrs := netlink.NewLinkAttrs()
			attrs.Name, attrs.MTU = p.Text("device", "cilium_vxlan"), f.MTU
			if err := h.LinkAdd(&netlink.Vxlan{LinkAttrs: attrs, FlowBased: true, Port: p.Int("port", 8472)}); err != nil {
				return fmt.Errorf("ebpf-vxlan: %s: %w; see `cnibench probe`", attrs.Name, err)
			}
			link, err := h.LinkByName(attrs.Name)
			if err != nil {
				return err
			}
			node, err := c.load(n, []string{"from_overlay", "to_overlay", "from_netdev", "to_netdev"}, uplink.Attrs().Index, link.Attrs().Index)
			if err != nil {
				return err
			}
			if err := classify(h, link.Attrs().Index, netlink.HANDLE_MIN_INGRESS, "from_overlay", node.Programs["from_overlay"]); err != nil {
				return err
			}
			if err := classify(h, link.Attrs().Index, netlink.HANDLE_MIN_EGRESS, "to_overlay", node.Programs["to_overlay"]); err != nil {
				return err
			}
			if err := c.atUplink(h, uplink, node); err != nil {
				return err
			}
			return h.LinkSetUp(link)
		})
	},
}

// CiliumRoutes makes Cilium's native routing between nodes of one segment. Each node has a route
// to each other node's pods (autoDirectNodeRoutes); the programs look the routes up.
var CiliumRoutes = wire.Transport{
	Name:    "ebpf-routes",
	Summary: "a route per node that eBPF programs look up and follow past the node's stack (Cilium's native routing)",
	Setup: func(ctx context.Context, f *wire.Fabric, _ wire.Params) error {
		c, err := ciliumOf(f, "ebpf-routes")
		if err != nil {
			return err
		}
		if err := f.DirectRoutes(ctx); err != nil {
			return err
		}
		return f.OnUplinks(ctx, func(n *wire.Node, h *netlink.Handle, uplink netlink.Link) error {
			node, err := c.load(n, []string{"from_netdev", "to_netdev"}, uplink.Attrs().Index, 0)
			if err != nil {
				return err
			}
			return c.atUplink(h, uplink, node)
		})
	},
}

// CiliumWireGuard makes the programs at the uplink send the tunnel's packets through the
// encryption piece's device. That device marks the packets that it has encrypted.
var CiliumWireGuard = wire.Transport{
	Name:    "ebpf-wireguard",
	Summary: "an eBPF program at the uplink that sends the tunnel's packets through a WireGuard device (Cilium)",
	Params:  []string{"device", "tunnel-port"},
	Setup: func(ctx context.Context, f *wire.Fabric, p wire.Params) error {
		c, err := ciliumOf(f, "ebpf-wireguard")
		if err != nil {
			return err
		}
		device := p.Text("device", "cilium_wg0")
		return f.OnUplinks(ctx, func(n *wire.Node, h *netlink.Handle, uplink netlink.Link) error {
			link, err := h.LinkByName(device)
			if err != nil {
				return fmt.Errorf("ebpf-wireguard: %s: %w; give the encryption piece that device", device, err)
			}
			node := c.nodes[n]
			constants := c.with(node.constants, map[string]any{
				"wireguard": uint32(link.Attrs().Index), "tunnel_port": bigPort(uint16(p.Int("tunnel-port", 8472))),
			})
			programs, err := loadEBPF(ciliumObject, []string{"from_netdev", "to_netdev"}, constants, node.shareMaps())
			if err != nil {
				return err
			}
			f.OnDown(func() error { programs.Close(); return nil })
			return ciliumNetdev(h, uplink, programs)
		})
	},
}

// atUplink attaches the node's programs to the uplink if Cilium needs them there. Without
// kube-proxy replacement it does not (pkg/option/config.go, AreDevicesRequired), and
// CiliumWireGuard attaches its own.
func (c *cilium) atUplink(h *netlink.Handle, uplink netlink.Link, node *ciliumNode) error {
	if c.settings["node_port"] != true {
		return nil
	}
	return ciliumNetdev(h, uplink, node.Collection)
}

// ciliumNetdev attaches the programs of the node's uplink.
func ciliumNetdev(h *netlink.Handle, uplink netlink.Link, programs *ebpf.Collection) error {
	if err := classify(h, uplink.Attrs().Index, netlink.HANDLE_MIN_INGRESS, "from_netdev", programs.Programs["from_netdev"]); err != nil {
		return err
	}
	return classify(h, uplink.Attrs().Index, netlink.HANDLE_MIN_EGRESS, "to_netdev", programs.Programs["to_netdev"])
}
