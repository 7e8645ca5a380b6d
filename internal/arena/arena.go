// Package arena says what an arena is: a place where contenders run. It knows
// no namespaces, clusters or workloads; bench sees arenas only through it, and
// every arena passes the conformance suite in arenatest. Next: lab/lab.go.
package arena

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/result"
)

// Arena is where contenders run.
type Arena interface {
	// Name is "lab", "microvm" or "kube".
	Name() string
	// Supports says nil, or an *Unsupported with the reason and the remedy.
	Supports(ctx context.Context, c *contender.Contender) error
	// HasPath says nil, or an *Unsupported with the reason why the contender
	// lacks that path here, and the remedy.
	HasPath(c *contender.Contender, path string) error
	// Variant is the underlay that the contender runs on unless the plan says
	// otherwise; samples of different variants are never compared.
	Variant(c *contender.Contender) string
	// Up makes the contender's network on that variant of the underlay, with
	// a pod on every node, from nothing; no two contenders share anything.
	// After an error nothing is left.
	Up(ctx context.Context, c *contender.Contender, variant string) (Network, error)
}

// Network is one contender that is up.
type Network interface {
	// Nodes are the machines of the cluster, as places where commands run
	// in the host network.
	Nodes() []Endpoint
	// Pods are the endpoints of the pod network, at least one on each node.
	Pods() []Endpoint
	// Pair is the client and the server of a path ("pod", "same-node",
	// "host"), and the address at which the client reaches the server.
	Pair(ctx context.Context, path string) (Pair, error)
	// Service puts the server of the path "pod", or those that the ports name,
	// behind a Service address with those ports, beside that many other
	// Services that have one port and the path's server. It replaces what an earlier call programmed. took is the
	// time from no Services to all of them on every node.
	Service(ctx context.Context, ports []Port, others int) (p Pair, took time.Duration, err error)
	// Uplink is the name of the nodes' interface on the underlay.
	Uplink() string
	// Notes are what a reader must know of how this network was made: what
	// the kernel lacked and was left out.
	Notes() []result.Reason
	// Down ends every process of the network and takes the network away.
	Down(ctx context.Context) error
}

// Pair is what a step crosses.
type Pair struct {
	Client, Server Endpoint
	Target         netip.Addr
	// Ports are where the client reaches the server's ports that have another
	// number at Target, as a NodePort has; nil: each has the same.
	Ports map[uint16]uint16
}

// At is where the client reaches that port of the server.
func (p Pair) At(port uint16) netip.AddrPort {
	if other, moved := p.Ports[port]; moved {
		port = other
	}
	return netip.AddrPortFrom(p.Target, port)
}

// Port is one port of a Service; the server behind it listens on the same.
type Port struct {
	Protocol string // TCP, UDP, SCTP
	Number   uint16
	Server   Endpoint // a pod; nil: the server of the path "pod"
}

// The protocols of ports, as Kubernetes writes them.
const (
	TCP  = "TCP"
	UDP  = "UDP"
	SCTP = "SCTP"
)

// Endpoint is a node or a pod: a place where commands run, with an address.
type Endpoint interface {
	host.Runner
	// Name is unique in the network: "node1", "node1-pod1".
	Name() string
	// Node is the name of the machine that the endpoint is on.
	Node() string
	// Addr is the endpoint's own address.
	Addr() netip.Addr
	// Dir is a folder on the endpoint for configuration files and sockets;
	// it goes away with the network.
	Dir() string
	// CPUs are the CPUs that commands which are not aside are bound to when
	// this endpoint is of the pair; none means all.
	CPUs() []int
}

// The paths that a step can cross.
const (
	PathPod      = "pod"       // pod to pod on another node
	PathSameNode = "same-node" // pod to pod on the same node
	PathHost     = "host"      // node to node, past the pod network
	PathService  = "service"   // pod to a Service address
)

// Unsupported says why something can't run here and what would help.
type Unsupported struct {
	Reason string
	Remedy string
	// OtherKernel says that another kernel, or root on one, is all it takes.
	OtherKernel bool
}

func (e *Unsupported) Error() string {
	if e.Remedy == "" {
		return e.Reason
	}
	return fmt.Sprintf("%s; %s", e.Reason, e.Remedy)
}

// AsUnsupported is the *Unsupported in err's chain, or nil.
func AsUnsupported(err error) *Unsupported {
	var u *Unsupported
	if errors.As(err, &u) {
		return u
	}
	return nil
}
