//go:build linux

package ovs

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// podMAC returns the MAC address of the pod's interface. It is locally administered and contains
// the pod's IPv4 address, so that it is unique in the network.
func podMAC(addr netip.Addr) net.HardwareAddr {
	return append(net.HardwareAddr{0x0a, 0x58}, addr.AsSlice()...)
}

// podVeth makes a veth pair from the node to the pod, gives the pod the address and a default
// route through the gateway, and returns the name of the node's end, which is up. Antrea's and
// Kube-OVN's CNI plugins do the same without other plugins. If the datapath is not in the kernel,
// the pod computes its checksums itself, as in both products.
func podVeth(pod *wire.Pod, addr netip.Prefix, gateway netip.Addr, mtu int, datapath string) (string, error) {
	h, err := pod.Node.NS.Netlink()
	if err != nil {
		return "", err
	}
	defer h.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = pod.Name, mtu
	pair := &netlink.Veth{
		LinkAttrs: attrs, PeerName: wire.UplinkName, PeerNamespace: netlink.NsFd(pod.NS.FD()),
		PeerHardwareAddr: podMAC(addr.Addr()), PeerMTU: uint32(mtu),
	}
	if err := h.LinkAdd(pair); err != nil {
		return "", fmt.Errorf("veth of %s: %w", pod.Name, err)
	}
	if err := h.LinkSetUp(pair); err != nil {
		return "", fmt.Errorf("veth of %s: %w", pod.Name, err)
	}
	if err := podAddress(pod, addr, gateway); err != nil {
		return "", fmt.Errorf("interface of %s: %w", pod.Name, err)
	}
	if datapath == "system" {
		return pod.Name, nil
	}
	return pod.Name, wire.TxChecksumOff(&wire.Node{NS: pod.NS}, wire.UplinkName)
}

func podAddress(pod *wire.Pod, addr netip.Prefix, gateway netip.Addr) error {
	h, err := pod.NS.Netlink()
	if err != nil {
		return err
	}
	defer h.Close()
	link, err := h.LinkByName(wire.UplinkName)
	if err != nil {
		return err
	}
	if err := h.AddrAdd(link, &netlink.Addr{IPNet: wire.IPNet(addr)}); err != nil {
		return err
	}
	if err := h.LinkSetUp(link); err != nil {
		return err
	}
	return h.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: gateway.AsSlice()})
}

// internalPort gives an interface that Open vSwitch made in the node its address and brings it
// up.
func internalPort(n *wire.Node, name string, addr netip.Prefix) error {
	return n.OnLink(name, func(h *netlink.Handle, link netlink.Link) error {
		if err := h.AddrAdd(link, &netlink.Addr{IPNet: wire.IPNet(addr)}); err != nil {
			return err
		}
		return h.LinkSetUp(link)
	})
}

// routesBy adds routes through an interface of the node.
func routesBy(n *wire.Node, name string, routes []netlink.Route) error {
	return n.OnLink(name, func(h *netlink.Handle, link netlink.Link) error {
		for _, r := range routes {
			r.LinkIndex = link.Attrs().Index
			if err := h.RouteAdd(&r); err != nil {
				return fmt.Errorf("route to %s: %w", r.Dst, err)
			}
		}
		return nil
	})
}
