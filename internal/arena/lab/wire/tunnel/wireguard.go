//go:build linux

package tunnel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// WireGuard makes a WireGuard device on every node. Its peers are the other nodes; keys are made
// for this network. It is a transport, or it encrypts another transport. The parameter routes
// says how packets reach the device, in which products differ:
//
//	network  one route for the whole pod network (flannel)
//	peers    a route to each other node's pods (Antrea)
//	table    the same routes in a table of their own; a rule looks up packets there
//	         that are not marked as encrypted, before table main (Calico)
//	none     no route: an eBPF program redirects packets (Cilium)
//
// The other parameters: device and port are its name and UDP port; overhead is the difference
// between the underlay's MTU and the device's, in bytes (default: the contender's); address is
// the device's /32: network (the network address of the node's pods), gateway (the pods'
// gateway) or none; allowed lists whose packets a peer may send: pods, or nodes-and-pods if the
// packets of a tunnel are encrypted; mark is the firewall mark of encrypted packets; table and
// priority belong to routes table.
var WireGuard = wire.Transport{
	Name:    "wireguard",
	Summary: "one WireGuard device a node, every other node its peer (RFC 8439 cipher in the kernel)",
	Params:  []string{"device", "port", "overhead", "address", "allowed", "mark", "routes", "table", "priority"},
	Setup: func(ctx context.Context, f *wire.Fabric, p wire.Params) error {
		routes, err := p.OneOf("wireguard", "routes", "network", "peers", "table", "none")
		if err != nil {
			return err
		}
		address, err := p.OneOf("wireguard", "address", "network", "gateway", "none")
		if err != nil {
			return err
		}
		allowed, err := p.OneOf("wireguard", "allowed", "pods", "nodes-and-pods")
		if err != nil {
			return err
		}
		keys := map[*wire.Node]wgtypes.Key{}
		for _, n := range f.Nodes {
			if keys[n], err = wgtypes.GeneratePrivateKey(); err != nil {
				return fmt.Errorf("wireguard: %w", err)
			}
		}
		device, port := p.Text("device", "wg0"), p.Int("port", 51820)
		return f.OnUplinks(ctx, func(n *wire.Node, h *netlink.Handle, _ netlink.Link) error {
			attrs := netlink.NewLinkAttrs()
			attrs.Name, attrs.MTU = device, f.MTU-p.Int("overhead", f.Overhead)
			link := &netlink.Wireguard{LinkAttrs: attrs}
			if err := h.LinkAdd(link); err != nil {
				return fmt.Errorf("wireguard: %s: %w; see `cnibench probe`", device, err)
			}
			key, mark := keys[n], p.Int("mark", 0)
			config := wgtypes.Config{PrivateKey: &key, ListenPort: &port, FirewallMark: &mark, Peers: wgPeers(f, n, keys, port, allowed == "nodes-and-pods")}
			if err := wgConfigure(n, device, config); err != nil {
				return fmt.Errorf("wireguard: %s: %w", device, err)
			}
			own := map[string]netip.Addr{"network": tunnelAddr(n), "gateway": wire.GatewayOf(n.PodCIDR)}[address]
			if own.IsValid() {
				if err := h.AddrAdd(link, &netlink.Addr{IPNet: wire.IPNet(netip.PrefixFrom(own, 32))}); err != nil {
					return fmt.Errorf("wireguard: address of %s: %w", device, err)
				}
			}
			if err := h.LinkSetUp(link); err != nil {
				return fmt.Errorf("wireguard: %s: %w", device, err)
			}
			for _, r := range wgRoutes(f, n, routes, p.Int("table", 1), link.Attrs().Index) {
				if err := h.RouteAdd(&r); err != nil {
					return fmt.Errorf("wireguard: route to %s: %w", r.Dst, err)
				}
			}
			if routes != "table" {
				return nil
			}
			if err := h.RuleAdd(unmarkedRule(mark, p.Int("table", 1), p.Int("priority", 99))); err != nil {
				return fmt.Errorf("wireguard: routing rule: %w", err)
			}
			return nil
		})
	},
}

// wgPeers returns the configuration of the other nodes as peers of the node's device.
func wgPeers(f *wire.Fabric, n *wire.Node, keys map[*wire.Node]wgtypes.Key, port int, nodes bool) []wgtypes.PeerConfig {
	var peers []wgtypes.PeerConfig
	for _, peer := range f.Nodes {
		if peer == n {
			continue
		}
		c := wgtypes.PeerConfig{
			PublicKey:         keys[peer].PublicKey(),
			Endpoint:          net.UDPAddrFromAddrPort(netip.AddrPortFrom(peer.Addr.Addr(), uint16(port))),
			ReplaceAllowedIPs: true,
			AllowedIPs:        []net.IPNet{*wire.IPNet(peer.PodCIDR)},
		}
		if nodes {
			c.AllowedIPs = append(c.AllowedIPs, *wire.IPNet(netip.PrefixFrom(peer.Addr.Addr(), 32)))
		}
		peers = append(peers, c)
	}
	return peers
}

// wgConfigure configures the device.
func wgConfigure(n *wire.Node, device string, config wgtypes.Config) error {
	return n.NS.Do(func() error {
		c, err := wgctrl.New()
		if err != nil {
			return err
		}
		return errors.Join(c.ConfigureDevice(device, config), c.Close())
	})
}

// wgRoutes returns the routes that send pods' packets into the device.
func wgRoutes(f *wire.Fabric, n *wire.Node, kind string, table, device int) []netlink.Route {
	switch kind {
	case "none":
		return nil
	case "network":
		return []netlink.Route{{LinkIndex: device, Dst: wire.IPNet(f.PodNetwork), Scope: netlink.SCOPE_LINK}}
	case "peers":
		table = unix.RT_TABLE_MAIN
	}
	var list []netlink.Route
	for _, peer := range f.Nodes {
		r := netlink.Route{LinkIndex: device, Dst: wire.IPNet(peer.PodCIDR), Scope: netlink.SCOPE_LINK, Table: table}
		if peer == n {
			if kind != "table" {
				continue
			}
			// Packets for the node's own pods must be looked up in table main.
			r = netlink.Route{Dst: wire.IPNet(peer.PodCIDR), Type: unix.RTN_THROW, Table: table}
		}
		list = append(list, r)
	}
	return list
}

// unmarkedRule returns a rule that looks up packets without the mark in the table.
func unmarkedRule(mark, table, priority int) *netlink.Rule {
	rule := markedRule(mark, mark, table, priority)
	rule.Invert = true
	return rule
}

// markedRule returns a rule that looks up packets with the mark in the table.
func markedRule(mark, mask, table, priority int) *netlink.Rule {
	rule, bits := netlink.NewRule(), uint32(mask)
	rule.Mark, rule.Mask = uint32(mark), &bits
	rule.Table, rule.Priority, rule.Family = table, priority, unix.AF_INET
	return rule
}
