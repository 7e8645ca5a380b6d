package arena

import (
	"context"
	"net/netip"
	"time"
)

// SandboxNamespace is a namespace of a policy check.
type SandboxNamespace struct {
	// Name is unique in the sandbox. The namespace in the cluster has a
	// generated name.
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

// Sandbox holds the namespaces and pods of a check of NetworkPolicies.
type Sandbox interface {
	// Pod returns the pod as a place where commands run. The error names a pod
	// that the sandbox does not have.
	Pod(namespace, name string) (Endpoint, error)
	// Addrs are the pod's addresses, IPv4 first, then IPv6 where present.
	Addrs(namespace, name string) []netip.Addr
	// Apply creates or replaces NetworkPolicies: YAML documents of
	// networking.k8s.io/v1 whose metadata.namespace is the Name of a
	// SandboxNamespace. If one document can't be read, none is applied. Apply
	// returns before the policies have an effect.
	Apply(ctx context.Context, manifests []byte) error
	// Delete removes the policies that Apply has made.
	Delete(ctx context.Context) error
	// Newcomer makes a pod with those labels beside the named one, whose first process
	// connects to target over TCP from its first instant on, for that time, and removes it.
	// It returns when the pod has ended.
	Newcomer(ctx context.Context, namespace, beside, name string, labels map[string]string, target netip.AddrPort, life time.Duration) (Attempts, error)
	// EngineEnds counts how often each program of the pod network's own pods has ended so
	// far, by a name for people. It is empty where nobody knows.
	EngineEnds(ctx context.Context) (map[string]int, error)
	// Close removes the namespaces with everything in them.
	Close(ctx context.Context) error
}

// Attempts are the connections of a newcomer, one after the other.
type Attempts struct {
	Tried, Reached int
	First, Last    time.Duration // of those that reached: begun so long after its first instant
}
