package lab

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/lab/wire"
	"github.com/cnibench/cnibench/internal/contender"
)

// serviceNet is where Service addresses come from: kubeadm's default.
var serviceNet = netip.MustParsePrefix("10.96.0.0/12")

// otherPort is the port of the other Services.
const otherPort = 80

// HasPath implements arena.Arena.
func (l *lab) HasPath(c *contender.Contender, path string) error {
	switch path {
	case arena.PathPod, arena.PathSameNode, arena.PathHost:
		return nil
	case arena.PathService:
		if c.Lab.Service != nil {
			return nil
		}
		return &arena.Unsupported{
			Reason: c.ID + " has no Services of its own in the lab",
			Remedy: "nothing is missing: its figures from pod to pod stand for themselves",
		}
	}
	return &arena.Unsupported{
		Reason: fmt.Sprintf("the lab has no path %q", path),
		Remedy: fmt.Sprintf("it has %s, %s, %s and %s", arena.PathPod, arena.PathService, arena.PathSameNode, arena.PathHost),
	}
}

// syncPatience is how long programming Services may take. For 10,000 of them,
// iptables-nft-restore takes half a minute of CPU time on every node to add them and
// half as long to remove them.
const syncPatience = 15 * time.Minute

// Service implements arena.Network.
func (n *labNetwork) Service(ctx context.Context, ports []arena.Port, others int) (arena.Pair, time.Duration, error) {
	pair, err := n.Pair(ctx, arena.PathPod)
	if err != nil {
		return pair, 0, err
	}
	if n.proxy == nil {
		return pair, 0, n.lab.HasPath(&contender.Contender{ID: n.id}, arena.PathService)
	}
	ctx, cancel := context.WithTimeout(ctx, syncPatience)
	defer cancel()
	if err := n.Reset(ctx); err != nil {
		return pair, 0, err
	}
	table := services(n.pods[1].addr, ports, others)
	n.programmed = true
	begin := time.Now()
	if err := n.proxy.Sync(ctx, n.fabric, table); err != nil {
		return pair, 0, fmt.Errorf("program %d Services: %w", others+1, err)
	}
	pair.Target = table[len(table)-1].ClusterIP
	return pair, time.Since(begin), nil
}

// Reset implements arena.Network: it empties the nodes' connection tracking.
func (n *labNetwork) Reset(ctx context.Context) error {
	if n.proxy == nil {
		return nil
	}
	if n.programmed {
		ctx, cancel := context.WithTimeout(ctx, syncPatience)
		defer cancel()
		if err := n.proxy.Sync(ctx, n.fabric, nil); err != nil {
			return fmt.Errorf("remove Services: %w", err)
		}
		n.programmed = false
	}
	return n.proxy.Forget(ctx, n.fabric)
}

// Sandbox implements arena.Network: no contender of the lab enforces policies.
func (n *labNetwork) Sandbox(context.Context, []arena.SandboxNamespace) (arena.Sandbox, error) {
	return nil, &arena.Unsupported{
		Reason: "the lab's contenders are kernel configurations and have no policy engine",
		Remedy: "ask on a cluster: cnibench check policy --arena kube",
	}
}

// services returns the other Services and, last, the measured Service. In a
// datapath that searches a list of rules, packets so pass the rules of the others.
func services(server netip.Addr, ports []arena.Port, others int) []wire.ServicePort {
	var table []wire.ServicePort
	for i := range others {
		table = append(table, wire.ServicePort{
			Name: fmt.Sprintf("others/service-%d:http", i+1), ClusterIP: hostOf(serviceNet, i+2), Protocol: arena.TCP, Port: otherPort,
			// A port of its own: in a cluster no two Services have the same endpoints.
			Backends: []netip.AddrPort{netip.AddrPortFrom(server, uint16(1+i%math.MaxUint16))},
		})
	}
	own := hostOf(serviceNet, others+2)
	for _, p := range ports {
		at := server
		if p.Server != nil {
			at = p.Server.Addr()
		}
		table = append(table, wire.ServicePort{
			Name: fmt.Sprintf("cnibench/server:%s-%d", strings.ToLower(p.Protocol), p.Number), ClusterIP: own, Protocol: p.Protocol, Port: p.Number,
			Backends: []netip.AddrPort{netip.AddrPortFrom(at, p.Number)},
		})
	}
	return table
}
