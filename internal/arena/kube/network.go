package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/result"
)

// network is one contender that is up.
type network struct {
	arena     *Arena
	cl        *Cluster
	contender *contender.Contender
	run       string // the run's name, in the label of all objects
	namespace string // of the objects
	made      bool   // the namespace exists, or may exist
	lease     *lease // nil before it is held
	installed bool   // the contender, or a part of it, may be installed
	ctx       context.Context
	cancel    context.CancelFunc

	nodes, pods []*endpoint
	noHost      *arena.Unsupported // why no pod may use the host network; nil: pods may
	uplink      string
	uplinkMTU   int
	sameUplink  []bool   // by node: whether its uplink has that name
	added       []string // names of containers that the cluster has added to the pods

	services []string // names of the Services that exist, or may exist

	mu        sync.Mutex
	sandboxes []*sandbox
}

// Nodes implements arena.Network.
func (n *network) Nodes() []arena.Endpoint { return arena.Endpoints(n.nodes) }

// Pods implements arena.Network.
func (n *network) Pods() []arena.Endpoint { return arena.Endpoints(n.pods) }

// Uplink implements arena.Network. Without the host network it is the pods'
// interface, as Notes says.
func (n *network) Uplink() string { return n.uplink }

// Notes implements arena.Network.
func (n *network) Notes() []result.Reason {
	var notes []result.Reason
	add := func(code, format string, args ...any) {
		notes = append(notes, result.Reason{Code: code, Text: fmt.Sprintf(format, args...)})
	}
	if n.noHost != nil {
		add("no_host_network", "%s: there is no baseline, packets are those of the pods' interface, and the nodes' CPUs and memory were read inside pods", n.noHost.Reason)
	}
	if len(n.added) > 0 {
		add("pods_changed", "the cluster added containers to the pods (%s): their work is in the figures; let what adds them pass by namespaces labelled %s=%s", strings.Join(n.added, ", "), labelManaged, managedBy)
	}
	if len(n.arena.list) == 1 {
		add("one_node", "client and server are on one node: nothing crosses to another")
	}
	if n.shared() {
		add("nodes_share_a_machine", "two of the nodes are one machine: its CPU time is counted once, for client and server together")
	}
	if slices.Contains(n.sameUplink, false) {
		add("uplink_differs", "the nodes' interfaces on the underlay have different names; packets are those of the client's node")
	}
	first := n.arena.list[0].info
	for _, other := range n.arena.list[1:] {
		if other.info.KernelVersion != first.KernelVersion {
			add("kernel_differs", "the nodes run different kernels: %s and %s", first.KernelVersion, other.info.KernelVersion)
			break
		}
	}
	return notes
}

// Effort implements arena.Network.
func (n *network) Effort(ctx context.Context) (map[string]float64, error) {
	if !n.installed {
		return nil, nil
	}
	return n.arena.opt.Install.Effort(ctx, n.cl)
}

// Pair implements arena.Network. The client is on the first node and the server on the
// second; for the path same-node both are on the server's node.
func (n *network) Pair(ctx context.Context, path string) (arena.Pair, error) {
	if err := n.arena.HasPath(n.contender, path); err != nil {
		return arena.Pair{}, err
	}
	pair := func(client, server *endpoint) (arena.Pair, error) {
		return arena.Pair{Client: client, Server: server, Target: server.Addr()}, nil
	}
	switch path {
	case arena.PathPod:
		return pair(n.pods[0], n.pods[1])
	case arena.PathHost:
		if n.noHost != nil {
			return arena.Pair{}, n.noHost
		}
		return pair(n.nodes[0], n.nodes[1])
	case arena.PathSameNode:
		neighbour, err := n.neighbour(ctx)
		if err != nil {
			return arena.Pair{}, err
		}
		return pair(neighbour, n.server())
	}
	return arena.Pair{}, fmt.Errorf("path %q has no pair before a server listens", path)
}

// server returns the pod in which servers run.
func (n *network) server() *endpoint { return n.pods[min(1, len(n.arena.list)-1)] }

// neighbour returns the second pod of the server's node. The first call makes it.
func (n *network) neighbour(ctx context.Context) (*endpoint, error) {
	count := len(n.arena.list)
	if len(n.pods) > count {
		return n.pods[count], nil
	}
	at := n.server().node
	plan := podPlan{namespace: n.namespace, name: at.name + "-pod2", node: at, hostNetwork: n.contender.ID == HostID}
	if err := n.makePods(ctx, []podPlan{plan}); err != nil {
		return nil, err
	}
	made, err := n.cl.await(ctx, n.lease, n.namespace, n.arena.list, plan.name)
	if err != nil {
		return nil, err
	}
	e := n.endpoint(plan.name, at, made[plan.name])
	n.pods = append(n.pods, e)
	return e, nil
}

// faultPatience is how long the API server may take to report the pods' states.
const faultPatience = 5 * time.Second

// Fault implements arena.Network: a pod is gone, has ended or is on a node that does not
// answer. If the API server does not answer, Fault returns nil: the broken streams are
// reported elsewhere.
func (n *network) Fault() error {
	ctx, cancel := context.WithTimeout(n.ctx, faultPatience)
	defer cancel()
	var errs []error
	asked := map[string]bool{}
	for _, e := range slices.Concat(n.nodes, n.pods) {
		if asked[e.pod] {
			continue
		}
		asked[e.pod] = true
		errs = append(errs, e.checkPod(ctx))
	}
	return errors.Join(append(errs, n.cl.checkNodes(ctx, n.arena.list))...)
}

// checkNodes returns an error that names the nodes that do not answer or are no longer in
// the cluster. It returns nil if the API server does not answer.
func (cl *Cluster) checkNodes(ctx context.Context, nodes []*node) error {
	list, err := cl.Client.CoreV1().Nodes().List(ctx, listAll)
	if err != nil {
		return nil
	}
	var errs []error
	for _, at := range nodes {
		i := slices.IndexFunc(list.Items, func(x corev1.Node) bool { return x.Name == at.realName })
		if i < 0 {
			errs = append(errs, fmt.Errorf("node %s is no longer in the cluster", at))
		} else if c := condition(&list.Items[i], corev1.NodeReady); c.Status == corev1.ConditionUnknown {
			errs = append(errs, fmt.Errorf("node %s does not answer: %s", at, c.Message))
		}
	}
	return errors.Join(errs...)
}

// Down implements arena.Network. After an error, the next Up calls it again. The Lease
// and its namespace stay until the contender is uninstalled, so that no other run takes
// the contender for abandoned.
func (n *network) Down(ctx context.Context) error {
	n.cancel() // ends every command
	var err error
	if n.installed {
		if n.made { // remove the pods first: the pod network must still detach them
			err = n.cl.clearOne(ctx, n.namespace, metav1.ListOptions{LabelSelector: labelRun + "=" + n.run})
		}
		if left := n.arena.opt.Install.Uninstall(ctx, n.cl, n.contender); left != nil {
			err = errors.Join(err, fmt.Errorf("uninstall %s: %w", n.contender.ID, left))
		} else {
			n.installed = false
		}
	}
	if !n.installed {
		n.lease.stop()
	}
	if left := n.removeObjects(ctx); left != nil {
		err = errors.Join(err, left)
	} else {
		n.made = n.installed
		n.mu.Lock()
		n.sandboxes = nil
		n.mu.Unlock()
	}
	if err != nil {
		n.arena.opt.log("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
		n.arena.mu.Lock()
		n.arena.remaining = append(n.arena.remaining, n)
		n.arena.mu.Unlock()
	}
	return err
}

// removeObjects removes all objects of the network except the contender. While the
// contender is installed, the Lease stays, too.
func (n *network) removeObjects(ctx context.Context) error {
	if len(n.cl.Options.Within) > 0 {
		return n.cl.clearRun(ctx, n.run)
	}
	return n.cl.removeNamespaces(ctx, n.namespaces()...)
}

// namespaces returns the network's namespaces that exist, or may exist. While the
// contender is installed, the namespace of the Lease is not among them.
func (n *network) namespaces() []string {
	var names []string
	n.mu.Lock()
	for _, s := range n.sandboxes {
		names = append(names, s.names()...)
	}
	n.mu.Unlock()
	if n.made && !n.installed {
		names = append(names, n.namespace)
	}
	return names
}

// removeRemaining takes earlier networks down that did not go down, since they would
// disturb the next contender.
func (a *Arena) removeRemaining(ctx context.Context) error {
	a.mu.Lock()
	remaining := a.remaining
	a.remaining = nil
	a.mu.Unlock()
	var errs []error
	for _, n := range remaining {
		if n.onlyTerminating(ctx) {
			continue
		}
		if err := n.Down(ctx); err != nil {
			errs = append(errs, fmt.Errorf("the earlier contender %s can't be removed: %w", n.contender.ID, err))
		}
	}
	return errors.Join(errs...)
}

// onlyTerminating reports whether all that is left of the network are namespaces without
// pods that are being removed. They disturb no measurement.
func (n *network) onlyTerminating(ctx context.Context) bool {
	if n.installed || len(n.cl.Options.Within) > 0 {
		return false
	}
	for _, name := range n.namespaces() {
		pods, err := n.cl.pods(ctx, name)
		if err != nil || len(pods) > 0 {
			return false
		}
		left, err := n.cl.Client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) && (err != nil || left.DeletionTimestamp == nil) {
			return false
		}
	}
	return true
}
