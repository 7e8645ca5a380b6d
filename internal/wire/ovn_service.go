//go:build linux

package wire

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
)

// ovnService is Kube-OVN's Services: OVN load balancers on the switch of pods,
// one for TCP and one for UDP, translated by connection tracking in Open
// vSwitch on the client's node. With them every packet of a pod is tracked.
var ovnService = Service{
	Name:     "ovn",
	Summary:  "load balancers of OVN on the pods' logical switch, translated by Open vSwitch's connection tracking (Kube-OVN)",
	Programs: ovnPrograms,
	Setup: func(ctx context.Context, f *Fabric, _ Params) (Proxy, error) {
		o, err := ovnOf(f)
		if err != nil {
			return nil, err
		}
		// pkg/controller/init.go, initLoadBalancer; the ones for SCTP and for session affinity stay empty
		// there and are left out.
		var args []string
		for _, proto := range ovnProtocols {
			args = append(args, "--", "create", "Load_Balancer", "name="+ovnBalancer(proto), "protocol="+proto)
		}
		if err := o.nbctl(ctx, args...); err != nil {
			return nil, err
		}
		args = args[:0]
		for _, proto := range ovnProtocols {
			args = append(args, "--", "ls-lb-add", ovnPodSwitch, ovnBalancer(proto))
		}
		return ovnProxy{o}, o.nbctl(ctx, args...)
	},
}

var ovnProtocols = []string{"tcp", "udp"}

// ovnBalancer is Kube-OVN's name for the load balancer (pkg/controller/vpc.go,
// GenVpcLoadBalancer of the default VPC: CLUSTER_TCP_LOADBALANCER …).
func ovnBalancer(proto string) string { return "cluster-" + proto + "-loadbalancer" }

type ovnProxy struct{ net *ovnNet }

// ovnBatch is how many Services one command adds, which keeps its arguments
// below the kernel's limit.
const ovnBatch = 1000

// Sync implements Proxy. Kube-OVN adds one Service after the other
// (pkg/controller/endpoint.go); here a command adds many.
func (x ovnProxy) Sync(ctx context.Context, f *Fabric, table []ServicePort) error {
	if len(table) == 0 {
		if err := f.parallel(ctx, func(_ context.Context, n *Node) error { return forgetConnections(n) }); err != nil {
			return err
		}
	}
	var args []string
	for _, proto := range ovnProtocols {
		args = append(args, "--", "clear", "Load_Balancer", ovnBalancer(proto), "vips")
	}
	for len(table) > 0 {
		n := min(len(table), ovnBatch)
		for _, svc := range table[:n] {
			args = append(args, ovnVIP(svc)...)
		}
		if err := x.net.nbctl(ctx, args...); err != nil {
			return fmt.Errorf("ovn: %w", err)
		}
		table, args = table[n:], nil
	}
	if len(args) > 0 {
		if err := x.net.nbctl(ctx, args...); err != nil {
			return fmt.Errorf("ovn: %w", err)
		}
	}
	return x.net.settle(ctx)
}

// ovnVIP adds the Service to its protocol's load balancer.
func ovnVIP(svc ServicePort) []string {
	backends := make([]string, len(svc.Backends))
	for i, b := range svc.Backends {
		backends[i] = b.String()
	}
	proto := strings.ToLower(svc.Protocol)
	vip := netip.AddrPortFrom(svc.ClusterIP, svc.Port)
	return []string{"--", "lb-add", ovnBalancer(proto), vip.String(), strings.Join(backends, ","), proto}
}
