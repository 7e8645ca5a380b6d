// Package kube is the arena made of a Kubernetes cluster that is there. It
// measures the pod network through pods of its own, in a namespace that goes
// away afterwards, and reaches them through the API server's exec streams
// alone. It changes nothing else in the cluster; what installs and removes pod
// networks is package install, behind Installer. client-go stays in here.
// Next: connect.go finds the cluster, up.go makes the pods of a contender,
// worker.go runs this program in a pod on a node, and machines.go as root on all
// nodes where somebody asks for that.
package kube

import (
	"context"

	"github.com/cnibench/cnibench/internal/contender"
)

// Program is where the image has this program.
const Program = "/usr/local/bin/cnibench"

// The contenders that run without an Installer.
const (
	HostID        = "host"         // the baseline: pods in the host network
	ThisClusterID = "this-cluster" // the pod network that is there
)

// How a Service is reached on the path service.
const (
	ClusterIP = "clusterip"
	NodePort  = "nodeport"
	Headless  = "headless" // the pod's own address: what a Service costs nothing of
)

// Options is what the arena is told.
type Options struct {
	// Kubeconfig is a file and Context one of its contexts. Empty: $KUBECONFIG
	// or ~/.kube/config with its current context, else the pod's own service
	// account.
	Kubeconfig, Context string
	// Nodes are names of nodes, the client's first and then the server's.
	// Empty: two that are ready.
	Nodes []string
	// Image has this program at Program, and PullPolicy is Kubernetes' for it:
	// Always, IfNotPresent, Never, or empty for Kubernetes' own choice.
	Image, PullPolicy string
	// Namespace is the prefix of generated names; empty is "cnibench".
	Namespace string
	// Within are namespaces that an administrator made: all is made in the first,
	// and the pods of check policy in all of them. Empty: each run makes its own.
	Within []string
	// Tolerations of the pods: key[=value]:effect, or "all".
	Tolerations []string
	// CPU and Memory are requests and limits of each pod, as Kubernetes writes
	// quantities; empty: none.
	CPU, Memory string
	// Service is ClusterIP (or empty), NodePort or Headless.
	Service string
	// Privileged makes the nodes' pods privileged, which check encryption needs
	// where the runtime keeps raw sockets from pods, and OpenMachines always.
	Privileged bool
	// Beside lets contenders stand at the same time, each with pods of its own, where
	// nothing is installed and each has a namespace of its own.
	Beside bool
	// NetAdmin lets the pods change their own network.
	NetAdmin bool
	// Programs are what the steps run: Up fails where the image lacks one.
	Programs []string
	// Install puts contenders on the cluster; nil measures the cluster as it is.
	Install Installer
	// Log says what goes on; nil is silent.
	Log func(format string, args ...any)
}

// Installer puts a contender on the cluster and takes it off again.
type Installer interface {
	// Supports is nil, or an *arena.Unsupported with reason and remedy.
	Supports(c *contender.Contender) error
	// Install returns when pods on all nodes reach each other. What it leaves
	// after an error, Uninstall takes away.
	Install(ctx context.Context, cl *Cluster, c *contender.Contender) error
	// Effort is what the installed contender took besides time, as metrics; asked once
	// it works.
	Effort(ctx context.Context, cl *Cluster) (map[string]float64, error)
	// Uninstall also cleans the nodes, and proves that nothing is left.
	Uninstall(ctx context.Context, cl *Cluster, c *contender.Contender) error
}

// UsageError is an option that nobody can follow: wrong usage (exit 2).
type UsageError struct{ Text string }

func (e *UsageError) Error() string { return e.Text }

// log says what goes on.
func (o *Options) log(format string, args ...any) {
	if o.Log != nil {
		o.Log(format, args...)
	}
}

// prefix is what generated names begin with.
func (o *Options) prefix() string {
	if o.Namespace == "" {
		return "cnibench"
	}
	return o.Namespace
}
