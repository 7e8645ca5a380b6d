package arena

import (
	"context"
	"net/netip"
)

// Policed is a Network whose pods NetworkPolicies can be applied to.
type Policed interface {
	// Sandbox makes namespaces with labelled pods for a policy check, and
	// returns when every pod runs and has its addresses; all of it goes away
	// with its Close, else with the network. The error is an *Unsupported
	// where the cluster's rules keep the namespaces or pods from being made.
	Sandbox(ctx context.Context, namespaces []SandboxNamespace) (Sandbox, error)
}

// SandboxNamespace is a namespace of a policy check.
type SandboxNamespace struct {
	// Name is a key, unique in the sandbox; the cluster's name is generated.
	Name   string
	Labels map[string]string
	Pods   []SandboxPod
}

// SandboxPod is a pod of a policy check.
type SandboxPod struct {
	Name   string // unique in its namespace
	Labels map[string]string
	Node   int         // index into Network.Nodes
	Ports  []NamedPort // ports that policies can name; nothing listens on them yet
}

// NamedPort is a port of a pod that has a name.
type NamedPort struct {
	Name     string // as Kubernetes has it: at most 15 lower-case letters, digits, dashes
	Protocol string // TCP, UDP, SCTP
	Number   uint16
}

// Sandbox is what a policy check is played out in.
type Sandbox interface {
	// Pod is where commands run in that pod; an error names a pod that the
	// sandbox was not made with.
	Pod(namespace, name string) (Endpoint, error)
	// Addrs are the pod's addresses, IPv4 first, then IPv6 where present.
	Addrs(namespace, name string) []netip.Addr
	// Apply creates or replaces NetworkPolicies: YAML documents of
	// networking.k8s.io/v1 whose metadata.namespace is a key of the sandbox.
	// Nothing is applied when one of them can't be read. It does not wait
	// until the policies have an effect.
	Apply(ctx context.Context, manifests []byte) error
	// Delete removes all that were applied and still are.
	Delete(ctx context.Context) error
	// Close removes the namespaces with all that is in them.
	Close(ctx context.Context) error
}
