//go:build linux

package ovs

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// Weave makes Weave Net's fast datapath. Every node has a Linux bridge for its pods. A veth pair
// connects the bridge to a datapath of the kernel's Open vSwitch, whose flows put frames for
// other nodes into VXLAN. All pods are on one L2 segment. Weave's router writes a flow when it
// sees the first packet of a pair of MAC addresses (router/fastdp.go); this piece writes all
// flows beforehand. The parameter port is VXLAN's.
var Weave = wire.Attach{
	Name:    "weave",
	Summary: "a veth to a Linux bridge that reaches other nodes through an Open vSwitch datapath of the kernel (Weave Net fastdp)",
	Params:  []string{"port"},
	Setup: func(ctx context.Context, f *wire.Fabric, p wire.Params) error {
		port := p.Int("port", weavePort)
		for _, n := range f.Nodes {
			if err := weaveNode(ctx, f, n, port); err != nil {
				return fmt.Errorf("weave: %s: %w", n.Name, err)
			}
		}
		return nil
	},
	Plug: func(ctx context.Context, f *wire.Fabric, pod *wire.Pod, _ wire.Params) (netip.Addr, error) {
		n := pod.Node
		addr := n.PodAddr(pod.Nth)
		end, err := podVeth(pod, netip.PrefixFrom(addr, f.PodNetwork.Bits()), wire.GatewayOf(n.PodCIDR), f.PodMTU(), "system")
		if err != nil {
			return addr, fmt.Errorf("weave: %w", err)
		}
		err = n.OnLink(end, func(h *netlink.Handle, link netlink.Link) error {
			bridge, err := h.LinkByName(weaveBridge)
			if err != nil {
				return err
			}
			if err := h.LinkSetMaster(link, bridge); err != nil {
				return err
			}
			return h.LinkSetHairpin(link, true)
		})
		if err != nil {
			return addr, fmt.Errorf("weave: %w", err)
		}
		// Weave's router also deletes its flows when it learns a new address.
		stations := weaveStations(f, &wire.Pod{Node: n, Addr: addr})
		for _, n := range f.Nodes {
			if err := weaveWrite(ctx, n, stations); err != nil {
				return addr, fmt.Errorf("weave: flows of %s: %w", n.Name, err)
			}
		}
		return addr, nil
	},
}

// Names and numbers of weaveworks/weave v2.5.1 net/bridge.go, and of its
// router's port plus one (router/fastdp.go).
const (
	weaveBridge   = "weave"
	weaveDatapath = "datapath"
	weavePort     = 6784

	weaveVethPort  = 1 // the datapath's port for the veth to the bridge
	weaveVXLANPort = 2
)

// weaveNode makes the node's bridge and datapath.
func weaveNode(ctx context.Context, f *wire.Fabric, n *wire.Node, port int) error {
	dpctl := func(args ...string) error { return n.Feed(ctx, nil, nil, append([]string{"ovs-dpctl"}, args...)...) }
	if err := dpctl("add-dp", weaveDatapath); err != nil {
		return fmt.Errorf("%w; see `cnibench probe`", err)
	}
	h, err := n.NS.Netlink()
	if err != nil {
		return err
	}
	defer h.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr = weaveBridge, podMAC(wire.GatewayOf(n.PodCIDR))
	bridge := &netlink.Bridge{LinkAttrs: attrs}
	if err := h.LinkAdd(bridge); err != nil {
		return fmt.Errorf("bridge: %w", err)
	}
	attrs = netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = "vethwe-bridge", f.PodMTU()
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: "vethwe-datapath", PeerMTU: uint32(f.PodMTU())}
	if err := h.LinkAdd(pair); err != nil {
		return fmt.Errorf("veth to the datapath: %w", err)
	}
	if err := h.LinkSetMaster(pair, bridge); err != nil {
		return fmt.Errorf("veth to the datapath: %w", err)
	}
	if err := dpctl("add-if", weaveDatapath, fmt.Sprintf("%s,port_no=%d", pair.PeerName, weaveVethPort)); err != nil {
		return err
	}
	vxlan := fmt.Sprintf("vxlan-%d,type=vxlan,port_no=%d,remote_ip=flow,key=flow,dst_port=%d", port, weaveVXLANPort, port)
	if err := dpctl("add-if", weaveDatapath, vxlan); err != nil {
		return err
	}
	for _, name := range []string{weaveDatapath, pair.PeerName, pair.Name, weaveBridge} {
		link, err := h.LinkByName(name)
		if err == nil && name == weaveDatapath {
			err = h.LinkSetMTU(link, f.PodMTU())
		}
		if err == nil {
			err = h.LinkSetUp(link)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	own := netip.PrefixFrom(wire.GatewayOf(n.PodCIDR), f.PodNetwork.Bits())
	if err := h.AddrAdd(bridge, &netlink.Addr{IPNet: wire.IPNet(own)}); err != nil {
		return fmt.Errorf("address of %s: %w", weaveBridge, err)
	}
	return nil
}

// weaveStation is a sender of frames behind a node's bridge: a pod, or the bridge itself.
type weaveStation struct {
	node *wire.Node
	mac  net.HardwareAddr
}

func weaveStations(f *wire.Fabric, more *wire.Pod) []weaveStation {
	var list []weaveStation
	for _, n := range f.Nodes {
		list = append(list, weaveStation{n, podMAC(wire.GatewayOf(n.PodCIDR))})
	}
	for _, pod := range append(f.Pods[:len(f.Pods):len(f.Pods)], more) {
		list = append(list, weaveStation{pod.Node, podMAC(pod.Addr)})
	}
	return list
}

// weaveWrite replaces all of the node's flows by those between the stations.
func weaveWrite(ctx context.Context, n *wire.Node, stations []weaveStation) error {
	if err := n.Feed(ctx, nil, nil, "ovs-dpctl", "del-flows", weaveDatapath); err != nil {
		return err
	}
	return n.Feed(ctx, []byte(weaveFlows(n, stations)), nil, "ovs-dpctl", "add-flows", weaveDatapath, "-")
}

// weaveFlows returns the node's flows, one a line, in the form that ovs-dpctl reads: from each
// station of this node to each station of other nodes and to all nodes, and back.
func weaveFlows(n *wire.Node, stations []weaveStation) string {
	var text strings.Builder
	tunnel := func(to *wire.Node) string {
		return fmt.Sprintf("set(tunnel(tun_id=%#x,src=%s,dst=%s,ttl=64,flags(df))),%d", weaveID(n, to), n.Addr.Addr(), to.Addr.Addr(), weaveVXLANPort)
	}
	broadcast := net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	veth := strconv.Itoa(weaveVethPort)
	for _, from := range stations {
		in := fmt.Sprintf("in_port(%d)", weaveVethPort)
		if from.node != n {
			in = fmt.Sprintf("tunnel(tun_id=%#x,src=%s,dst=%s,ttl=64/0,flags(+key)),in_port(%d)", weaveID(from.node, n), from.node.Addr.Addr(), n.Addr.Addr(), weaveVXLANPort)
		}
		flow := func(to net.HardwareAddr, actions string) {
			fmt.Fprintf(&text, "%s,eth(src=%s,dst=%s) %s\n", in, from.mac, to, actions)
		}
		var everywhere []string
		told := map[*wire.Node]bool{n: true}
		for _, to := range stations {
			switch {
			case from.node != n && to.node == n:
				flow(to.mac, veth)
			case from.node == n && to.node != n:
				flow(to.mac, tunnel(to.node))
				if !told[to.node] {
					everywhere = append(everywhere, tunnel(to.node))
					told[to.node] = true
				}
			}
		}
		if from.node != n {
			everywhere = []string{veth}
		}
		flow(broadcast, strings.Join(append(everywhere, "0"), ","))
	}
	return text.String()
}

// weaveID returns the VXLAN network identifier. It holds the short peer numbers, of 12 bits
// each, of sender and receiver.
func weaveID(from, to *wire.Node) int { return from.Index + 1 | (to.Index+1)<<12 }
