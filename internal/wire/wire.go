//go:build linux

// Package wire holds the pieces of a datapath, one file each: how pods are
// attached to their node, how the nodes' pod networks are joined, and what
// else a product sets up. Pieces configure namespaces that somebody else made
// and throws away, so no piece cleans up. They know no contender and no arena.
// Next: all.go lists the pieces, routes.go is the smallest.
package wire

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/nearest"
	"github.com/cnibench/cnibench/internal/ns"
)

// Fabric is the underlay that pieces build on: nodes that reach each other's
// Addr through their UplinkName.
type Fabric struct {
	Nodes      []*Node
	Router     *VPC         // the VPC router between the nodes; nil on a switch
	MTU        int          // of the underlay
	Overhead   int          // bytes a packet that the contender's encapsulation takes
	PodNetwork netip.Prefix // all nodes' pod networks
	Left       []string     // what a piece left out because the kernel lacks it, in words
	Pods       []*Pod       // attached so far
	// Shared is what the pieces of one product have in common, by its name:
	// loaded programs, databases. The piece that comes first makes it.
	Shared map[string]any

	closers []func() error

	mu    sync.Mutex
	fault error
}

// Fail says that the network is no longer what was set up: a daemon has ended.
// The first reason stays.
func (f *Fabric) Fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fault == nil {
		f.fault = err
	}
}

// Fault is why the network is no longer what was set up; nil if nothing is
// known against it.
func (f *Fabric) Fault() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fault
}

// OnDown has fn called when the network goes down, after its processes have
// ended: for what neither a process nor a namespace holds, such as open eBPF
// objects.
func (f *Fabric) OnDown(fn func() error) { f.closers = append(f.closers, fn) }

// Close calls what OnDown was given, the last first.
func (f *Fabric) Close() error {
	var errs []error
	for _, fn := range slices.Backward(f.closers) {
		errs = append(errs, fn())
	}
	f.closers = nil
	return errors.Join(errs...)
}

// PodMTU is what is left for pods on the underlay.
func (f *Fabric) PodMTU() int { return f.MTU - f.Overhead }

// Node is a machine of the cluster.
type Node struct {
	Index   int // from 0
	Name    string
	NS      *ns.NS
	Addr    netip.Prefix // on the underlay
	PodCIDR netip.Prefix // the pods of this node
	// HostRange are addresses of the underlay set apart for pods of this
	// node that sit directly on it (macvlan, ipvlan).
	HostRange [2]netip.Addr
	Dir       string // for the configuration, databases and sockets of its daemons; in memory, goes away with the network
	// Run runs commands in the node's network namespace until their context ends.
	Run host.Runner
	// Daemon starts one that runs until the network goes down, which kills it.
	Daemon func(c host.Command) (host.Process, error)
}

// PodAddr is the i-th pod's address of the node's pod network, i from 0: the
// first two are the network's own and the gateway's.
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
	NS   *ns.NS
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
	// Programs must be installed.
	Programs []host.Program
	// Setup prepares every node once, before there are pods.
	Setup func(ctx context.Context, f *Fabric, p Params) (Proxy, error)
}

// Proxy programs Services on every node.
type Proxy interface {
	// Sync makes the table the only Services that there are. It returns when
	// new connections find them.
	Sync(ctx context.Context, f *Fabric, table []ServicePort) error
}

// Forgetter is a Proxy whose nodes remember connections: in connection
// tracking, in eBPF maps.
type Forgetter interface {
	Proxy
	// Forget has every node forget all connections, whoever made them, so
	// that no load begins with what the one before has left.
	Forget(ctx context.Context, f *Fabric) error
}

// UplinkName is the node's interface on the underlay.
const UplinkName = "eth0"

// Params are a piece's parameters as a contender file gives them.
type Params map[string]any

// Transport joins the nodes' pod networks, or adds something to every node.
type Transport struct {
	Name    string
	Summary string
	Params  []string // names that Setup understands
	AnyKey  bool     // every name is understood
	// MaxNodes is how many nodes the transport can join; 0 is no limit.
	MaxNodes int
	// Limit says why there is a limit and what has none.
	Limit string
	// Programs must be installed.
	Programs []host.Program
	Setup    func(ctx context.Context, f *Fabric, p Params) error
}

// Attach gives a pod its interface: through standard CNI plugins (Conf), or by
// itself (Plug).
type Attach struct {
	Name    string
	Summary string
	Params  []string
	Plugins []string // programs of the CNI path that it runs
	// Conf is the network configuration list of a node, as its product
	// writes it to /etc/cni/net.d.
	Conf func(f *Fabric, n *Node, p Params) map[string]any
	// Programs must be installed, beside the plugins.
	Programs []host.Program
	// Setup, if set, prepares every node, before the transport.
	Setup func(ctx context.Context, f *Fabric, p Params) error
	// Plug connects the pod, whose namespace is empty, and returns its address.
	Plug func(ctx context.Context, f *Fabric, pod *Pod, p Params) (netip.Addr, error)
}

// LookupTransport finds a transport or an extra by name.
func LookupTransport(name string) (Transport, error) {
	return nearest.Find("lab transport", name, Transports(), func(x Transport) string { return x.Name })
}

// LookupAttach finds an attachment by name.
func LookupAttach(name string) (Attach, error) {
	return nearest.Find("lab attachment", name, Attachments(), func(x Attach) string { return x.Name })
}

// LookupService finds a Service mechanism by name.
func LookupService(name string) (Service, error) {
	return nearest.Find("lab service", name, Services(), func(x Service) string { return x.Name })
}

// Check refuses parameters that a piece does not know.
func (p Params) Check(piece string, known []string) error {
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if !slices.Contains(known, name) {
			return nearest.Unknown("parameter of "+piece, name, known)
		}
	}
	return nil
}

// Int is a whole number, or the default where it is not given.
func (p Params) Int(name string, def int) int {
	switch v := p[name].(type) {
	case int:
		return v
	case int64:
		return int(v)
	case uint64:
		return int(v)
	}
	return def
}

// Text is a text, or the default where it is not given.
func (p Params) Text(name, def string) string {
	if v, ok := p[name].(string); ok {
		return v
	}
	return def
}

// OneOf is a text that is one of the words; the first of them where it is not
// given. Any other is an error that names the piece.
func (p Params) OneOf(piece, name string, words ...string) (string, error) {
	v := p.Text(name, words[0])
	if !slices.Contains(words, v) {
		return "", nearest.Unknown(piece+" "+name, v, words)
	}
	return v, nil
}

// Bool is a truth value, or the default where it is not given.
func (p Params) Bool(name string, def bool) bool {
	if v, ok := p[name].(bool); ok {
		return v
	}
	return def
}

// onEach runs fn for every node with a netlink socket and the uplink in it.
func (f *Fabric) onEach(ctx context.Context, fn func(n *Node, h *netlink.Handle, uplink netlink.Link) error) error {
	for _, n := range f.Nodes {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := n.on(fn); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return nil
}

func (n *Node) on(fn func(n *Node, h *netlink.Handle, uplink netlink.Link) error) error {
	h, err := n.NS.Netlink()
	if err != nil {
		return err
	}
	defer h.Close()
	uplink, err := h.LinkByName(UplinkName)
	if err != nil {
		return fmt.Errorf("%s: %w", UplinkName, err)
	}
	return fn(n, h, uplink)
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
