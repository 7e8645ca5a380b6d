//go:build linux

// Package all lists the pieces of all families. Next: ../wire.go.
package all

import (
	"github.com/cnibench/cnibench/internal/arena/lab/wire"
	"github.com/cnibench/cnibench/internal/arena/lab/wire/ebpf"
	"github.com/cnibench/cnibench/internal/arena/lab/wire/ovs"
	"github.com/cnibench/cnibench/internal/arena/lab/wire/plain"
	"github.com/cnibench/cnibench/internal/arena/lab/wire/service"
	"github.com/cnibench/cnibench/internal/arena/lab/wire/tunnel"
)

// Transports lists the transports and extras, in the order of listings.
func Transports() []wire.Transport {
	return []wire.Transport{plain.Routes, plain.VPCRoutes, tunnel.VXLAN, tunnel.IPIP, tunnel.WireGuard, tunnel.ESP, tunnel.Flanneld, ovs.WeaveGuard, ebpf.CiliumVXLAN, ebpf.CiliumRoutes, ebpf.CiliumWireGuard, ebpf.CalicoDevice, ebpf.CalicoNotrack, plain.Masquerade, plain.PolicyChains, plain.Sysctl, plain.DefaultRoute,
		ovs.AntreaTunnel, ovs.AntreaGatewayRoutes, ovs.OVNOverlay, ovs.OVNLocalnet, ovs.OVNServiceNAT, ovs.TunnelNotrack}
}

// Attachments lists the ways of attaching a pod, in the order of listings.
func Attachments() []wire.Attach {
	return []wire.Attach{plain.Bridge, plain.PTP, plain.Macvlan, plain.IPvlan, ovs.Weave, ebpf.CiliumVeth, ebpf.CiliumNetkit, ebpf.CalicoVeth, ovs.Antrea, ovs.OVN}
}

// Services lists the mechanisms behind Service addresses, in the order of
// listings.
func Services() []wire.Service {
	return []wire.Service{service.IPTables, service.NFTables, service.IPVS, ebpf.CiliumService, ebpf.CalicoService, ovs.AntreaProxy, ovs.OVNService}
}
