// Package kube is the arena on an existing Kubernetes cluster. It measures the pod
// network through pods of its own, in a namespace that it removes afterwards, and
// controls them only through exec streams of the API server. It changes nothing else in
// the cluster; package install, behind Installer, installs and removes pod networks.
// Only this package and those below it use client-go. Next: connect.go finds the
// cluster, up.go makes the pods of a contender, worker.go runs this program in a pod on
// a node, and machines.go runs it as root on all nodes.
package kube

import (
	"context"
	"time"

	"github.com/cnibench/cnibench/internal/contender"
)

// Program is the path of this program in an image that has it. As a word of a command in a
// pod it means this program, wherever the pod has it.
const Program = "/usr/local/bin/cnibench"

// The contenders that run without an Installer.
const (
	HostID        = "host"         // the baseline: pods in the host network
	ThisClusterID = "this-cluster" // the cluster's own pod network
)

// How a Service is reached on the path service.
const (
	ClusterIP = "clusterip"
	NodePort  = "nodeport"
	Headless  = "headless" // at the pod's own address, which no Service translates
)

// Options are the settings of the arena.
type Options struct {
	// Kubeconfig is a file and Context one of its contexts. Empty: $KUBECONFIG
	// or ~/.kube/config with its current context, else the pod's own service
	// account.
	Kubeconfig, Context string
	// RequestTimeout limits each request to the API server; 0: the usual limits.
	RequestTimeout time.Duration
	// Nodes are names of nodes, the client's first and then the server's.
	// Empty: two that are ready.
	Nodes []string
	// NodeLabel selects the nodes to choose from, as key=value. Pod is NAMESPACE/NAME of a
	// pod whose node comes first, To of one whose node comes second.
	NodeLabel, Pod, To string
	// Image is the pods' image: any with a shell. The pods get this program if it is not at
	// Program. Empty: one that the nodes have, or can pull. PullPolicy is Always,
	// IfNotPresent, Never, or empty for Kubernetes' default.
	Image, PullPolicy string
	// Namespace is the prefix of generated names; empty is "cnibench".
	Namespace string
	// Within names namespaces that an administrator made. A run makes its objects in the
	// first, and the pods of check policy in all of them. Empty: each run makes namespaces.
	Within []string
	// Tolerations of the pods: key[=value]:effect, or "all".
	Tolerations []string
	// CPU and Memory are requests and limits of each pod, as Kubernetes writes
	// quantities; empty: none.
	CPU, Memory string
	// Service is ClusterIP (or empty), NodePort or Headless.
	Service string
	// Privileged makes the nodes' pods privileged. OpenMachines needs that, and so does
	// check encryption if the runtime denies pods raw sockets.
	Privileged bool
	// Anonymous keeps the names of nodes out of Environment.
	Anonymous bool
	// OnNodes gives the nodes' pods the node's processes, so that install/node acts on
	// the nodes; it needs Privileged.
	OnNodes bool
	// NetAdmin lets the pods change their own network.
	NetAdmin bool
	// Programs are the programs that the steps run. Up fails if the image lacks one.
	Programs []string
	// Install installs contenders on the cluster; nil measures the cluster as it is.
	Install Installer
	// Guard is the command line that starts Guard in this program; nil: nobody removes what
	// this process leaves if it is killed.
	Guard []string
	// Log, if not nil, is called with messages on the progress.
	Log func(format string, args ...any)
}

// Installer installs contenders on the cluster and uninstalls them.
type Installer interface {
	// Supports returns nil or an *arena.Unsupported.
	Supports(c *contender.Contender) error
	// Install installs the contender and returns when pods on all nodes reach each other.
	// After an error, Uninstall must be called.
	Install(ctx context.Context, cl *Cluster, c *contender.Contender) error
	// Effort returns what the installation took besides time, as metrics. It must be called
	// after Install.
	Effort(ctx context.Context, cl *Cluster) (map[string]float64, error)
	// Uninstall removes the contender, cleans the nodes, and returns an error if something
	// is left.
	Uninstall(ctx context.Context, cl *Cluster, c *contender.Contender) error
}

// UsageError is the error of an option with an impossible value: wrong usage (exit 2).
type UsageError struct{ Text string }

func (e *UsageError) Error() string { return e.Text }

func (o *Options) log(format string, args ...any) {
	if o.Log != nil {
		o.Log(format, args...)
	}
}

// privileged reports whether pods can be root on a node.
func (o *Options) privileged() bool { return o.Privileged || o.OnNodes || o.Install != nil }

// prefix returns the beginning of generated names.
func (o *Options) prefix() string {
	if o.Namespace == "" {
		return "cnibench"
	}
	return o.Namespace
}
