//go:build linux

package ovs

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// The pieces of Antrea. Pods are ports of an Open vSwitch bridge. Antrea's flows
// (antrea_flows.go) route, track connections and translate Services in the switch. Packets
// for pods of other nodes leave through a Geneve port or, without encapsulation, through the
// gateway port, where the node's own routes take over.

const antreaGateway = "antrea-gw0"

// Antrea makes Antrea's bridge and a port on it for each pod. The parameter datapath selects
// Open vSwitch's datapath: system (in the kernel, as Antrea uses) or netdev (in user space).
var Antrea = wire.Attach{
	Name:    "antrea",
	Summary: "a veth to an Open vSwitch bridge with Antrea's pipeline of flows",
	Params:  []string{"datapath"},
	Setup: func(ctx context.Context, f *wire.Fabric, p wire.Params) error {
		datapath, err := p.OneOf("antrea", "datapath", "system", "netdev")
		if err != nil {
			return err
		}
		all, err := switches(ctx, f, datapath)
		if err != nil {
			return err
		}
		return f.Parallel(ctx, func(ctx context.Context, n *wire.Node) error { return antreaNode(ctx, f, all[n]) })
	},
	Plug: func(ctx context.Context, f *wire.Fabric, pod *wire.Pod, _ wire.Params) (netip.Addr, error) {
		all, err := switches(ctx, f, "")
		if err != nil {
			return netip.Addr{}, err
		}
		addr := pod.Node.PodAddr(pod.Nth)
		name, err := podVeth(pod, netip.PrefixFrom(addr, pod.Node.PodCIDR.Bits()), wire.GatewayOf(pod.Node.PodCIDR), f.PodMTU(), all[pod.Node].kind)
		if err != nil {
			return netip.Addr{}, err
		}
		port, err := all[pod.Node].port(ctx, integrationBridge, name)
		if err != nil {
			return netip.Addr{}, err
		}
		flows := antreaFlows(pod.Node, antreaPodFlows, "{port}", port, "{ip}", addr.String(), "{mac}", podMAC(addr).String())
		return addr, all[pod.Node].flows(ctx, flows)
	},
}

// antreaNode makes the gateway port and writes the pipeline
// (pkg/agent/agent.go, setupGatewayInterface).
func antreaNode(ctx context.Context, f *wire.Fabric, s *ovSwitch) error {
	n := s.node
	_, err := s.port(ctx, integrationBridge, antreaGateway, "type=internal", "ofport_request=2",
		fmt.Sprintf("mac=%q", antreaGatewayMAC(n)), fmt.Sprintf("mtu_request=%d", f.PodMTU()))
	if err != nil {
		return err
	}
	if err := n.NS.SetSysctl("net.ipv4.conf."+antreaGateway+".arp_announce", "1"); err != nil {
		return err
	}
	if err := internalPort(n, antreaGateway, netip.PrefixFrom(wire.GatewayOf(n.PodCIDR), n.PodCIDR.Bits())); err != nil {
		return err
	}
	flows := append(antreaMisses(), antreaFlows(n, antreaBase)...)
	return s.flows(ctx, append(flows, antreaFlows(n, antreaProxyBase)...))
}

// AntreaTunnel makes the tunnel of Antrea's encap mode: one Geneve port for all nodes; a flow
// sets each packet's destination. With IPsec there is also a port for each node, on which that
// node's packets arrive. Another piece encrypts them.
var AntreaTunnel = wire.Transport{
	Name:    "antrea-tunnel",
	Summary: "Geneve between Open vSwitch bridges, the destination set by flows (Antrea's encap mode)",
	Params:  []string{"ipsec", "checksum"},
	Setup: func(ctx context.Context, f *wire.Fabric, p wire.Params) error {
		all, err := switches(ctx, f, "system")
		if err != nil {
			return err
		}
		return f.Parallel(ctx, func(ctx context.Context, n *wire.Node) error {
			s := all[n]
			// pkg/agent/agent.go, setupDefaultTunnelInterface; tunnelCsum is false by default.
			settings := []string{"type=geneve", fmt.Sprintf("ofport_request=%d", antreaTunnelPort), "options:key=flow", "options:remote_ip=flow"}
			if p.Bool("checksum", false) {
				settings = append(settings, "options:csum=true")
			}
			port, err := s.port(ctx, integrationBridge, "antrea-tun0", settings...)
			if err != nil {
				return err
			}
			flows := append(antreaFlows(n, antreaTunnelBase, "{port}", port), antreaPeers(f, n, antreaPeerTunnel)...)
			for _, peer := range f.Nodes {
				if peer == n || !p.Bool("ipsec", false) {
					continue
				}
				// pkg/agent/controller/noderoute/node_route_controller.go, createIPSecTunnelPort
				name := "tun-" + peer.Name
				port, err := s.port(ctx, integrationBridge, name, "type=geneve", "options:remote_ip="+peer.Addr.Addr().String())
				if err != nil {
					return err
				}
				if _, err := s.run(ctx, nil, "ovs-ofctl", "-O", "OpenFlow15", "mod-port", integrationBridge, name, "no-flood"); err != nil {
					return err
				}
				flows = append(flows, antreaFlows(n, antreaTunnelFlow, "{port}", port)...)
			}
			if err := s.flows(ctx, flows); err != nil {
				return err
			}
			return routesBy(n, antreaGateway, antreaTunnelRoutes(f, n))
		})
	},
}

// AntreaGatewayRoutes makes Antrea's network without a tunnel. Packets for pods of other nodes
// leave the bridge through the gateway port and follow the node's routes. The parameter routes
// says whether this piece writes the routes: direct (noEncap), or none if another piece does
// (WireGuard).
var AntreaGatewayRoutes = wire.Transport{
	Name:    "antrea-gateway",
	Summary: "packets for other nodes' pods leave the bridge for the node's own routes (Antrea's noEncap mode)",
	Params:  []string{"routes"},
	Setup: func(ctx context.Context, f *wire.Fabric, p wire.Params) error {
		kind, err := p.OneOf("antrea-gateway", "routes", "direct", "none")
		if err != nil {
			return err
		}
		all, err := switches(ctx, f, "system")
		if err != nil {
			return err
		}
		err = f.Parallel(ctx, func(ctx context.Context, n *wire.Node) error {
			return all[n].flows(ctx, antreaPeers(f, n, antreaPeerGateway))
		})
		if err != nil || kind == "none" {
			return err
		}
		// pkg/agent/route/route_linux.go, AddRoutes
		return f.DirectRoutes(ctx)
	},
}

// antreaTunnelRoutes returns routes that send the node's own packets for pods of other nodes
// into the bridge (pkg/agent/route/route_linux.go, AddRoutes).
func antreaTunnelRoutes(f *wire.Fabric, n *wire.Node) []netlink.Route {
	var list []netlink.Route
	for _, peer := range f.Nodes {
		if peer != n {
			list = append(list, netlink.Route{Dst: wire.IPNet(peer.PodCIDR), Gw: wire.GatewayOf(peer.PodCIDR).AsSlice(), Flags: int(netlink.FLAG_ONLINK)})
		}
	}
	return list
}
