//go:build linux

package wire

// Transports lists the transports and extras, in the order of listings.
func Transports() []Transport {
	return []Transport{routes, vpcRoutes, vxlan, ipip, wireguard, esp, flanneld, weaveGuard, ciliumVXLAN, ciliumRoutes, ciliumWireGuard, calicoDevice, calicoNotrack, masquerade, sysctl,
		antreaTunnel, antreaGatewayRoutes, ovnOverlay, ovnLocalnet, ovnServiceNAT, tunnelNotrack}
}

// Attachments lists the ways of attaching a pod, in the order of listings.
func Attachments() []Attach {
	return []Attach{bridge, ptp, macvlan, ipvlan, weave, vethEBPF, netkitEBPF, ptpEBPF, antreaAttach, ovn}
}

// Services lists the mechanisms behind Service addresses, in the order of
// listings.
func Services() []Service {
	return []Service{kubeProxyIPTables, kubeProxyNFTables, ipvs, ebpfService, calicoNAT, antreaProxy, ovnService}
}
