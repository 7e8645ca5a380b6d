//go:build linux

package ovs

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// joinNet holds the nodes' addresses in OVN (NODE_SWITCH_CIDR of Kube-OVN's install.sh).
var joinNet = netip.MustParsePrefix("100.64.0.0/16")

// ovn0 is the name of the node's own interface in OVN.
const ovn0 = "ovn0"

// OVNOverlay makes Kube-OVN's default network: one logical switch for the pods of all nodes, a
// distributed router, and a switch that connects the nodes. Geneve carries packets between
// nodes.
var OVNOverlay = wire.Transport{
	Name:    "ovn-overlay",
	Summary: "one OVN logical switch for all pods, a distributed router and Geneve between nodes (Kube-OVN's overlay)",
	Setup: func(ctx context.Context, f *wire.Fabric, _ wire.Params) error {
		o, err := ovnOf(f)
		if err != nil {
			return err
		}
		pods := f.PodNetwork.Masked()
		o.gateway = wire.GatewayOf(pods)
		o.address = func(pod *wire.Pod) netip.Prefix { return netip.PrefixFrom(pod.Node.PodAddr(pod.Nth), pods.Bits()) }
		o.group = func(n *wire.Node) string { return strings.ReplaceAll("ovn.default."+n.Name, "-", ".") }
		// pkg/controller/init.go: initClusterRouter, initNodeSwitch, initDefaultLogicalSwitch;
		// pkg/ovs/ovn-nb.go, CreateLogicalPatchPort; pkg/controller/vpc.go, the default route to the join switch.
		args := []string{"--", "lr-add", ovnRouter}
		args = append(args, ovnRouted(ovnPodSwitch, netip.PrefixFrom(o.gateway, pods.Bits()), net.HardwareAddr{0, 0, 0, 0x10, 0, 1})...)
		args = append(args, ovnRouted(ovnJoinSwitch, netip.PrefixFrom(wire.GatewayOf(joinNet), joinNet.Bits()), net.HardwareAddr{0, 0, 0, 0x10, 0, 2})...)
		args = append(args,
			// OVN evaluates policies only for packets that have a route, so there must be a route.
			"--", "lr-route-add", ovnRouter, "0.0.0.0/0", wire.GatewayOf(joinNet).String(),
			"--", "lr-policy-add", ovnRouter, "31000", "ip4.dst == "+pods.String(), "allow",
			"--", "lr-policy-add", ovnRouter, "31000", "ip4.dst == "+joinNet.String(), "allow")
		for _, n := range f.Nodes {
			args = append(args, ovnNode(o, n)...)
		}
		if err := o.nbctl(ctx, args...); err != nil {
			return err
		}
		return f.Parallel(ctx, func(ctx context.Context, n *wire.Node) error {
			// pkg/daemon/ovs_linux.go, configureNodeNic; pkg/daemon/controller_linux.go, reconcileRouters
			_, err := o.switches[n].port(ctx, integrationBridge, ovn0, "type=internal", fmt.Sprintf("mac=%q", podMAC(joinAddr(n))),
				fmt.Sprintf("mtu_request=%d", f.PodMTU()), "external_ids:iface-id=node-"+n.Name)
			if err != nil {
				return err
			}
			if err := internalPort(n, ovn0, netip.PrefixFrom(joinAddr(n), joinNet.Bits())); err != nil {
				return err
			}
			return routesBy(n, ovn0, []netlink.Route{{Dst: wire.IPNet(pods), Gw: wire.GatewayOf(joinNet).AsSlice()}})
		})
	},
}

// ovnRouted returns the commands that make a logical switch with a port to the router.
func ovnRouted(name string, gateway netip.Prefix, mac net.HardwareAddr) []string {
	onSwitch, onRouter := name+"-"+ovnRouter, ovnRouter+"-"+name
	return []string{
		"--", "ls-add", name,
		"--", "lrp-add", ovnRouter, onRouter, mac.String(), gateway.String(),
		"--", "lsp-add", name, onSwitch,
		"--", "lsp-set-type", onSwitch, "router",
		"--", "lsp-set-addresses", onSwitch, "router",
		"--", "lsp-set-options", onSwitch, "router-port=" + onRouter,
	}
}

// ovnNode returns the commands that make the node's port on the join switch, and that send
// packets of its pods to addresses outside OVN through that port (pkg/controller/node.go,
// handleAddNode; pkg/controller/subnet.go, addPolicyRouteForDistributedSubnet).
func ovnNode(o *ovnNet, n *wire.Node) []string {
	port, group := "node-"+n.Name, o.group(n)
	return []string{
		"--", "lsp-add", ovnJoinSwitch, port,
		"--", "lsp-set-addresses", port, fmt.Sprintf("%s %s", podMAC(joinAddr(n)), joinAddr(n)),
		"--", "lr-policy-add", ovnRouter, "30000", "ip4.dst == " + n.Addr.Addr().String(), "reroute", joinAddr(n).String(),
		"--", "pg-add", group,
		"--", "lr-policy-add", ovnRouter, "29000", "ip4.src == $" + group + "_ip4", "reroute", joinAddr(n).String(),
	}
}

// joinAddr returns the node's address on the join switch.
func joinAddr(n *wire.Node) netip.Addr {
	a := wire.GatewayOf(joinNet).As4()
	i := n.Index + 2
	a[2], a[3] = byte(i>>8), byte(i)
	return netip.AddrFrom4(a)
}

// providerNetwork is OVN's name for the nodes' own network; its bridge is called br- and this
// name.
const providerNetwork = "provider"

// OVNLocalnet makes Kube-OVN's underlay network. The node's uplink becomes a port of an Open
// vSwitch bridge, and the bridge takes over the node's address. The pods' logical switch is
// connected to that bridge, so that pods are on the nodes' own segment. The pods' gateway is
// OVN's router (logicalGateway of Kube-OVN's Subnet): after load-balancer translation a packet
// still has the gateway's MAC as destination; only Kube-OVN's patched OVN rewrites it to the
// pod's (ls_dnat_mod_dl_dst). The parameter vlan is the VLAN of the pods' packets; 0 for none.
var OVNLocalnet = wire.Transport{
	Name:    "ovn-localnet",
	Summary: "an OVN logical switch joined to the nodes' own network, no tunnel (Kube-OVN's underlay)",
	Params:  []string{"vlan"},
	Setup: func(ctx context.Context, f *wire.Fabric, p wire.Params) error {
		o, err := ovnOf(f)
		if err != nil {
			return err
		}
		o.gateway = wire.GatewayOf(f.Nodes[0].Addr)
		o.address = func(pod *wire.Pod) netip.Prefix {
			addr := pod.Node.HostRange[0]
			for range pod.Nth {
				addr = addr.Next()
			}
			return netip.PrefixFrom(addr, pod.Node.Addr.Bits())
		}
		if err := f.Parallel(ctx, func(ctx context.Context, n *wire.Node) error { return o.bridgeUplink(ctx, f, n) }); err != nil {
			return err
		}
		// pkg/ovs/ovn-nb-logical_switch_port.go, CreateLocalnetLogicalSwitchPort
		port := "localnet." + ovnPodSwitch
		args := append([]string{"--", "lr-add", ovnRouter}, ovnRouted(ovnPodSwitch, netip.PrefixFrom(o.gateway, f.Nodes[0].Addr.Bits()), net.HardwareAddr{0, 0, 0, 0x10, 0, 1})...)
		args = append(args,
			"--", "lsp-add", ovnPodSwitch, port,
			"--", "lsp-set-type", port, "localnet",
			"--", "lsp-set-addresses", port, "unknown",
			"--", "lsp-set-options", port, "network_name="+providerNetwork)
		if tag := p.Int("vlan", 0); tag > 0 {
			args = append(args, "--", "set", "Logical_Switch_Port", port, fmt.Sprintf("tag=%d", tag))
		}
		return o.nbctl(ctx, args...)
	},
}

// bridgeUplink makes the uplink a port of the provider bridge, and moves the uplink's address
// to the bridge (pkg/daemon/ovs_linux.go: configProviderNic,
// transferAddrsAndRoutes).
func (o *ovnNet) bridgeUplink(ctx context.Context, f *wire.Fabric, n *wire.Node) error {
	s, bridge := o.switches[n], "br-"+providerNetwork
	var mac net.HardwareAddr
	err := n.OnUplink(func(_ *wire.Node, h *netlink.Handle, uplink netlink.Link) error {
		mac = uplink.Attrs().HardwareAddr
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.bridge(ctx, bridge, fmt.Sprintf("other_config:hwaddr=%q", mac), "external_ids:vendor=kube-ovn"); err != nil {
		return err
	}
	if err := s.vsctl(ctx, "set", "Open_vSwitch", ".", fmt.Sprintf("external_ids:ovn-bridge-mappings=%s:%s", providerNetwork, bridge),
		"--", "set", "Interface", bridge, fmt.Sprintf("mtu_request=%d", f.MTU)); err != nil {
		return err
	}
	err = n.OnUplink(func(_ *wire.Node, h *netlink.Handle, uplink netlink.Link) error {
		return h.AddrDel(uplink, &netlink.Addr{IPNet: wire.IPNet(n.Addr)})
	})
	if err != nil {
		return err
	}
	if err := internalPort(n, bridge, n.Addr); err != nil {
		return err
	}
	_, err = s.port(ctx, bridge, wire.UplinkName)
	return err
}
