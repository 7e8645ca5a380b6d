//go:build linux

// Package service has the Service mechanisms that the kernel serves: iptables and
// nftables as kube-proxy writes them, IPVS. Next: nftables.go.
package service

import (
	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// localNodePorts lets packets for 127.0.0.0/8 be routed, as kube-proxy does for
// NodePorts on localhost (sysctlRouteLocalnet).
func localNodePorts(n *wire.Node) error {
	return n.NS.SetSysctl("net.ipv4.conf.all.route_localnet", "1")
}
