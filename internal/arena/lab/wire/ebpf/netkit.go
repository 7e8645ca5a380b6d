//go:build linux

package ebpf

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

var CiliumNetkit = wire.Attach{
	Name:    "netkit-ebpf",
	Summary: "a netkit device (Linux 6.7) that runs the pod's eBPF program itself when it sends, as Cilium does",
	Params:  ciliumParams,
	Setup:   ciliumSetup,
	Plug: func(_ context.Context, f *wire.Fabric, pod *wire.Pod, _ wire.Params) (netip.Addr, error) {
		return ciliumPlug(f, pod, netkitDevice(f))
	},
}

// netkitDevice makes a netkit pair in L3 mode, which has no ARP. An end without a program drops
// all packets (pkg/datapath/connector/netkit.go of cilium/cilium v1.16: policy blackhole on the
// pod's end).
func netkitDevice(f *wire.Fabric) podDevice {
	return func(h *netlink.Handle, name string, pod *wire.Pod, mtu int) (netlink.Link, net.HardwareAddr, func(*ebpf.Program) error, error) {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU = name, mtu
		pair := &netlink.Netkit{LinkAttrs: attrs, Mode: netlink.NETKIT_MODE_L3, Policy: netlink.NETKIT_POLICY_FORWARD, PeerPolicy: netlink.NETKIT_POLICY_BLACKHOLE}
		peer := netlink.NewLinkAttrs()
		peer.Name, peer.Namespace = podInterface, netlink.NsFd(pod.NS.FD())
		pair.SetPeerAttrs(&peer)
		if err := h.LinkAdd(pair); err != nil {
			return nil, nil, nil, fmt.Errorf("netkit: %w; see `cnibench probe`", err)
		}
		node, err := h.LinkByName(name)
		if err != nil {
			return nil, nil, nil, err
		}
		return node, nil, func(p *ebpf.Program) error {
			// The kernel looks the index up in the namespace of the calling thread.
			return pod.Node.NS.Do(func() error {
				l, err := link.AttachNetkit(link.NetkitOptions{Interface: node.Attrs().Index, Program: p, Attach: ebpf.AttachNetkitPeer})
				if err != nil {
					return fmt.Errorf("attach from_container: %w", err)
				}
				f.OnDown(l.Close)
				return nil
			})
		}, nil
	}
}
