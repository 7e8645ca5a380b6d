// Package arena says what an arena is: a place where contenders run. It knows
// no namespaces, clusters or workloads; bench sees arenas only through it, and
// every arena passes the conformance suite in arenatest. Next: lab/lab.go.
package arena

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/result"
)

// Arena is where contenders run. The interface is complete: nobody asks an
// arena for a method that is not in it, so that an arena which wraps another
// one passes every method on.
type Arena interface {
	// Name is "lab", "microvm" or "kube".
	Name() string
	// Environment returns facts of the arena that explain a result and that a
	// node's own fingerprint lacks, by environment key. Names of machines are in
	// result.Environment's keys that end in NameKey, and nowhere else.
	Environment() result.Environment
	// Anonymous returns the text without the names of machines: reports are
	// published.
	Anonymous(text string) string
	// Supports returns nil if the contender can run here, else an *Unsupported
	// that says why and what would help.
	Supports(ctx context.Context, c *contender.Contender) error
	// HasPath returns nil if the contender has that path here, else an
	// *Unsupported that says why not and what would help.
	HasPath(c *contender.Contender, path string) error
	// Variant returns the underlay that the contender runs on unless the plan
	// names another. Samples of different variants are never compared.
	Variant(c *contender.Contender) string
	// MaxUp returns for how many contenders there is room at the same time, each with
	// namespaces and processes of its own, recorded and under load. 1: a contender comes up
	// after the contender before went down.
	MaxUp() int
	// Slice returns how long a turn is unless the user says otherwise, long enough that loads
	// and recorders hear of its begin and end in time, and how long the load runs before.
	Slice() (lead, length time.Duration)
	// Up makes the contender's network on that variant of the underlay, with
	// a pod on every node, from nothing. Contenders share nothing. After an
	// error nothing is left.
	Up(ctx context.Context, c *contender.Contender, variant string) (Network, error)
}

// Network is one contender that is up.
type Network interface {
	// Nodes are the machines of the cluster. Commands run there in the host
	// network.
	Nodes() []Endpoint
	// Pods are the endpoints of the pod network, at least one on each node.
	Pods() []Endpoint
	// Pair returns the client and the server of a path ("pod", "same-node",
	// "host"), and the address at which the client reaches the server.
	Pair(ctx context.Context, path string) (Pair, error)
	// Service makes a Service with those ports. Behind it is the server of the
	// path "pod", or the server that a port names. It also makes that many other
	// Services, each with one port and the server of the path "pod". Services of
	// an earlier call are removed first. took is the time from no Services to
	// all of them on every node.
	Service(ctx context.Context, ports []Port, others int) (p Pair, took time.Duration, err error)
	// Reset removes what the last step left on the nodes: its Services, and the
	// entries of connection tracking where the arena can remove them.
	Reset(ctx context.Context) error
	// Fault returns an error if the network is no longer as Up made it, e.g.
	// because a daemon or a pod has ended.
	Fault() error
	// Sandbox makes namespaces with labelled pods for a check of
	// NetworkPolicies, and returns when every pod runs and has its addresses.
	// Close removes them, and so does Down. The error is an *Unsupported where
	// the network enforces no policies or the namespaces may not be made.
	Sandbox(ctx context.Context, namespaces []SandboxNamespace) (Sandbox, error)
	// Uplink is the name of the nodes' interface on the underlay.
	Uplink() string
	// Notes tell a reader what is different about this network, e.g. what the
	// kernel lacked and was left out.
	Notes() []result.Reason
	// Effort returns what the installation took besides time, as metrics of the
	// set-up's sample; nil if nothing was installed.
	Effort(ctx context.Context) (map[string]float64, error)
	// Down ends every process of the network and removes the network.
	Down(ctx context.Context) error
}

// Pair is the client and the server of a path.
type Pair struct {
	Client, Server Endpoint
	Target         netip.Addr // where the client reaches the server
	// Ports maps a port of the server to its port at Target where the two differ,
	// as they do for a NodePort.
	Ports map[uint16]uint16
}

// At returns the address and port at which the client reaches that port of the
// server.
func (p Pair) At(port uint16) netip.AddrPort {
	if atTarget, differs := p.Ports[port]; differs {
		port = atTarget
	}
	return netip.AddrPortFrom(p.Target, port)
}

// Port is a port of a Service. The server listens on the same number.
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

// Endpoints returns an arena's own endpoints as the interface.
func Endpoints[E Endpoint](list []E) []Endpoint {
	out := make([]Endpoint, len(list))
	for i, e := range list {
		out[i] = e
	}
	return out
}

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
	// CPUs to which the measured commands are bound while this endpoint is
	// client or server. Empty: all CPUs.
	CPUs() []int
}

// The paths that a step can cross.
const (
	PathPod      = "pod"       // pod to pod on another node
	PathSameNode = "same-node" // pod to pod on the same node
	PathHost     = "host"      // node to node, past the pod network
	PathService  = "service"   // pod to a Service address
)

// Unsupported is the error of something that can't run here. It says why, and
// what would help.
type Unsupported struct {
	Reason string
	Remedy string
	// OtherKernel says that only a feature of the kernel is missing, so that a
	// guest with another kernel may help.
	OtherKernel bool
	// Program says that only programs are known to be missing.
	Program bool
	// Denied says that the kernel has the feature, but only for root.
	Denied bool
}

func (e *Unsupported) Error() string {
	if e.Remedy == "" {
		return e.Reason
	}
	return strings.TrimSuffix(e.Reason, ".") + "; " + e.Remedy
}

// AsUnsupported returns the *Unsupported in err's chain, or nil.
func AsUnsupported(err error) *Unsupported {
	var u *Unsupported
	if errors.As(err, &u) {
		return u
	}
	return nil
}
