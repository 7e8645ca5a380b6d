//go:build linux

package ovs

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// OVNService makes Services as Kube-OVN does: the pods' switch has one OVN load balancer for TCP
// and one for UDP. Connection tracking in Open vSwitch translates packets on the client's node.
// With load balancers every packet of a pod is tracked.
var OVNService = wire.Service{
	Name:    "ovn",
	Summary: "load balancers of OVN on the pods' logical switch, translated by Open vSwitch's connection tracking (Kube-OVN)",
	Setup: func(ctx context.Context, f *wire.Fabric, _ wire.Params) (wire.Proxy, error) {
		o, err := ovnOf(f)
		if err != nil {
			return nil, err
		}
		// pkg/controller/init.go, initLoadBalancer. The balancers for SCTP and for session
		// affinity are left out, because they would be empty.
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
		return ovnProxy{net: o}, o.nbctl(ctx, args...)
	},
}

var ovnProtocols = []string{"tcp", "udp"}

// ovnBalancer returns Kube-OVN's name for the protocol's load balancer (pkg/controller/vpc.go,
// GenVpcLoadBalancer of the default VPC: CLUSTER_TCP_LOADBALANCER …).
func ovnBalancer(proto string) string { return "cluster-" + proto + "-loadbalancer" }

type ovnProxy struct {
	wire.Tracked
	net *ovnNet
}

// Sync implements Proxy. Kube-OVN adds one Service after the other to the load balancer
// (pkg/ovs/ovn-nb-load_balancer.go, LoadBalancerAddVip); Sync writes all in one transaction.
func (x ovnProxy) Sync(ctx context.Context, _ *wire.Fabric, table []wire.ServicePort) error {
	var ops []any
	for _, proto := range ovnProtocols {
		ops = append(ops, ovnVIPs(proto, table))
	}
	if err := x.net.transact(ctx, ops...); err != nil {
		return fmt.Errorf("ovn: load balancers: %w", err)
	}
	return x.net.settle(ctx)
}

// ovnVIPs returns the database operation that replaces all Services of the protocol's load
// balancer by those of the table (RFC 7047, section 5.2).
func ovnVIPs(proto string, table []wire.ServicePort) map[string]any {
	pairs := [][2]string{}
	for _, svc := range table {
		if strings.ToLower(svc.Protocol) != proto {
			continue
		}
		backends := make([]string, len(svc.Backends))
		for i, b := range svc.Backends {
			backends[i] = b.String()
		}
		pairs = append(pairs, [2]string{netip.AddrPortFrom(svc.ClusterIP, svc.Port).String(), strings.Join(backends, ",")})
	}
	return map[string]any{
		"op": "update", "table": "Load_Balancer",
		"where": [][3]string{{"name", "==", ovnBalancer(proto)}},
		"row":   map[string]any{"vips": []any{"map", pairs}},
	}
}

// transact sends operations to the northbound database without ovn-nbctl, because ten thousand
// Services do not fit into a command's arguments.
func (o *ovnNet) transact(ctx context.Context, ops ...any) error {
	ctx, cancel := withTimeout(ctx)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "unix", o.central.path("ovnnb_db.sock"))
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	err = json.NewEncoder(c).Encode(map[string]any{"id": 1, "method": "transact", "params": append([]any{"OVN_Northbound"}, ops...)})
	if err != nil {
		return err
	}
	return ovsdbReply(c)
}

// ovsdbReply reads the answer to a transaction (RFC 7047, section 4.1.3), which holds a result
// or an error for each operation. It returns the first error.
func ovsdbReply(r io.Reader) error {
	var reply struct {
		Error  any `json:"error"`
		Result []struct {
			Error   string `json:"error"`
			Details string `json:"details"`
		} `json:"result"`
	}
	if err := json.NewDecoder(r).Decode(&reply); err != nil {
		return fmt.Errorf("ovsdb-server's answer: %w", err)
	}
	if reply.Error != nil {
		return fmt.Errorf("ovsdb-server: %v", reply.Error)
	}
	for _, result := range reply.Result {
		if result.Error != "" {
			return fmt.Errorf("ovsdb-server: %s: %s", result.Error, result.Details)
		}
	}
	return nil
}
