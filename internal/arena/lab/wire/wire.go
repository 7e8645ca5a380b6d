//go:build linux

// Package wire defines the pieces of a datapath: how a pod is attached to its
// node, how the nodes' pod networks are joined, how Services reach pods. A piece
// is one file of a family: plain, tunnel, service, ebpf, ovs. Pieces configure
// namespaces that the arena makes and removes, so no piece cleans up. They know no
// contender and no arena, and a family imports no other one.
// Next: all/all.go lists the pieces, plain/routes.go is the smallest.
package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"sync"

	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/linux"
)

// Fabric is the underlay that pieces build on: nodes that reach each other's
// Addr through their UplinkName.
type Fabric struct {
	Nodes       []*Node
	Router      *VPC         // the VPC router between the nodes; nil on a switch
	MTU         int          // of the underlay
	AskedPodMTU int          // of the pods, bytes; 0 is what encapsulation leaves of MTU
	Overhead    int          // bytes a packet that the contender's encapsulation takes
	PodNetwork  netip.Prefix // all nodes' pod networks
	Left        []string     // sentences about what pieces left out because the kernel lacks it
	Pods        []*Pod       // attached so far

	shared  map[reflect.Type]any // by Share
	closers []func() error

	mu    sync.Mutex
	fault error
}

// Fail records that the network is no longer what was set up: a daemon has ended.
// Only the first error is kept.
func (f *Fabric) Fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fault == nil {
		f.fault = err
	}
}

// Fault returns the error that Fail recorded, or nil.
func (f *Fabric) Fault() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fault
}

// OnDown registers fn, which Close calls after the network's processes have ended.
// It is for what outlives processes and namespaces, such as open eBPF objects.
func (f *Fabric) OnDown(fn func() error) { f.closers = append(f.closers, fn) }

// Close calls the functions that OnDown registered, the last one first.
func (f *Fabric) Close() error {
	var errs []error
	for _, fn := range slices.Backward(f.closers) {
		errs = append(errs, fn())
	}
	f.closers = nil
	return errors.Join(errs...)
}

// PodMTU returns the MTU of the pods, bytes: AskedPodMTU, or what encapsulation leaves of the
// underlay's.
func (f *Fabric) PodMTU() int { return cmp.Or(f.AskedPodMTU, f.MTU-f.Overhead) }

// Node is a machine of the cluster.
type Node struct {
	Index   int // from 0
	Name    string
	NS      *linux.NetNS
	Addr    netip.Prefix // on the underlay
	PodCIDR netip.Prefix // the pods of this node
	// HostRange are addresses of the underlay set apart for pods of this
	// node that sit directly on it (macvlan, ipvlan).
	HostRange [2]netip.Addr
	Dir       string // for the configuration, databases and sockets of its daemons; in memory, goes away with the network
	// Run runs commands in the node's network namespace until their context ends.
	Run host.Runner
	// Daemon starts a command that runs until the network goes down.
	Daemon func(c host.Command) (host.Process, error)
}

// PodAddr returns the address of the node's i-th pod, i from 0. The network's own
// address and the gateway's come before the pods'.
func (n *Node) PodAddr(i int) netip.Addr {
	a := n.PodCIDR.Masked().Addr()
	for range i + 2 {
		a = a.Next()
	}
	return a
}

// Pod is an endpoint of the pod network.
type Pod struct {
	Name string // unique in the network
	Node *Node
	Nth  int // of its node, from 0
	NS   *linux.NetNS
	Addr netip.Addr // set when it is attached
}

// ServicePort is one port of a Service and the pods behind it.
type ServicePort struct {
	Name      string // "default/bench:tcp-5201", as kube-proxy names it
	ClusterIP netip.Addr
	Protocol  string // TCP, UDP
	Port      uint16
	Backends  []netip.AddrPort
}

// Service is a mechanism that brings packets for Service addresses to pods.
type Service struct {
	Name    string
	Summary string
	Params  []string
	// Setup prepares every node once, before there are pods.
	Setup func(ctx context.Context, f *Fabric, p Params) (Proxy, error)
}

// Proxy programs Services on every node.
type Proxy interface {
	// Sync replaces all Services by those of the table. It returns when new
	// connections find them.
	Sync(ctx context.Context, f *Fabric, table []ServicePort) error
	// Forget removes the connections that the nodes remember, in connection tracking or in
	// eBPF maps, so that a load does not depend on the connections of the load before.
	Forget(ctx context.Context, f *Fabric) error
}

// DefaultSPI is the security parameter index of ESP where a contender gives
// none: the first that is not reserved (RFC 4303, section 2.1).
const DefaultSPI = 0x100

// UplinkName is the node's interface on the underlay.
const UplinkName = "eth0"

// Transport joins the nodes' pod networks, or adds something to every node.
type Transport struct {
	Name    string
	Summary string
	Params  []string // names that Setup understands
	AnyKey  bool     // every name is understood
	// MaxNodes is the largest number of nodes that the transport can join; 0: no limit.
	MaxNodes int
	// Limit says why there is a limit, and names contenders without one.
	Limit string
	Setup func(ctx context.Context, f *Fabric, p Params) error
	// Attached, if set, adds something for each pod, after its attachment.
	Attached func(ctx context.Context, f *Fabric, pod *Pod, p Params) error
}

// Attach gives a pod its interface: through standard CNI plugins (Conf), or by
// itself (Plug).
type Attach struct {
	Name    string
	Summary string
	Params  []string
	Plugins []string // of a user's own configuration; package programs lists those of the others
	// Conf is the network configuration list of a node, as its product
	// writes it to /etc/cni/net.d.
	Conf func(f *Fabric, n *Node, p Params) map[string]any
	// Setup, if set, prepares every node, before the transport.
	Setup func(ctx context.Context, f *Fabric, p Params) error
	// Plug connects the pod, whose namespace is empty, and returns its address.
	Plug func(ctx context.Context, f *Fabric, pod *Pod, p Params) (netip.Addr, error)
}

// VPC is a router between per-node subnets, with a route table as a cloud's
// virtual private network has it.
type VPC struct {
	Box *linux.NetNS
}

// RouterPort returns the name of the router's interface to the node.
func RouterPort(n *Node) string { return fmt.Sprintf("port%d", n.Index+1) }
