package arena

import (
	"context"
	"net/netip"
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
	// Close removes the namespaces with everything in them.
	Close(ctx context.Context) error
}
