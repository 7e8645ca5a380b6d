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
	"github.com/cnibench/cnibench/internal/text"
)

// Arena is a cluster in which contenders are measured.
type Arena struct {
	cl          *Cluster
	opt         Options
	list        []*node
	thisCluster *contender.Contender
	lacking     map[string][]string // missing rights, by what is left out without them

	hostMu    sync.Mutex
	hostKnown bool
	hostErr   error // why the cluster refuses pods in the host network

	mu        sync.Mutex
	facts     map[string]string // facts that a network showed, for Environment
	remaining []*network        // networks that did not go down
}

// New connects, checks rights and options, and chooses the nodes. It makes
// nothing in the cluster. Errors: those of Connect, and *arena.Unsupported for
// missing rights, unusable nodes and objects that an earlier run has left.
func New(ctx context.Context, o Options) (*Arena, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	cl, err := Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	return newArena(ctx, cl)
}

func newArena(ctx context.Context, cl *Cluster) (*Arena, error) {
	a := &Arena{cl: cl, opt: cl.Options, facts: map[string]string{}}
	var err error
	if a.lacking, err = cl.checkRights(ctx); err != nil {
		return nil, err
	}
	if err := (leftovers{cl}).checkUnused(ctx); err != nil {
		return nil, err
	}
	tolerated, err := tolerations(a.opt.Tolerations)
	if err != nil {
		return nil, err
	}
	if a.list, err = cl.nodes(ctx, tolerated); err != nil {
		return nil, err
	}
	for _, n := range a.list {
		a.opt.log("%s is %s", n.name, n.realName)
	}
	a.thisCluster = cl.recognise(ctx)
	return a, nil
}

// check finds wrong values.
func (o *Options) check() error {
	for what, choice := range map[string]struct {
		value string
		of    []string
	}{
		"way to Services": {o.Service, []string{"", ClusterIP, NodePort, Headless}},
		"pull policy":     {o.PullPolicy, []string{"", string(corev1.PullAlways), string(corev1.PullIfNotPresent), string(corev1.PullNever)}},
	} {
		if !slices.Contains(choice.of, choice.value) {
			return text.Unknown(what, choice.value, choice.of[1:])
		}
	}
	if _, err := tolerations(o.Tolerations); err != nil {
		return err
	}
	_, err := limits(o)
	return err
}

// Name implements arena.Arena.
func (a *Arena) Name() string { return "kube" }

// MaxUp implements arena.Arena: contenders share the pod network that is there, each
// in a namespace of its own. What is installed has the cluster for itself, and so has who
// may make no namespaces.
func (a *Arena) MaxUp() int {
	if a.opt.Install == nil && len(a.opt.Within) == 0 {
		return maxSharing
	}
	return 1
}

// Slice implements arena.Arena: begin and end of a slice reach the recorders through the API
// server, some milliseconds late.
func (*Arena) Slice() (lead, length time.Duration) {
	return 100 * time.Millisecond, 200 * time.Millisecond
}

// maxSharing is how many contenders can share a cluster, each with two pods a node.
const maxSharing = 8

// Variant implements arena.Arena: a cluster has one underlay.
func (a *Arena) Variant(*contender.Contender) string { return "" }

// ThisCluster returns the contender of the cluster's own pod network, with product and
// version where they could be read.
func (a *Arena) ThisCluster() *contender.Contender { return a.thisCluster }

// Cluster returns the connection to the cluster.
func (a *Arena) Cluster() *Cluster { return a.cl }

// Kernel returns the kernel's release on the client's node.
func (a *Arena) Kernel() string { return a.list[0].info.KernelVersion }

// Supports implements arena.Arena.
func (a *Arena) Supports(ctx context.Context, c *contender.Contender) error {
	switch {
	case c.ID == HostID:
		return a.hostAllowed(ctx)
	case c.ID == ThisClusterID && a.opt.Install != nil:
		return &arena.Unsupported{
			Reason: "with --install every contender is installed afresh, so the cluster has none of its own",
			Remedy: "measure what is there in a run without --install",
		}
	case c.ID == ThisClusterID:
		for _, n := range a.list {
			if !n.ready {
				return &arena.Unsupported{
					Reason: fmt.Sprintf("node %s has no pod network yet", n),
					Remedy: "install one, or let cnibench do so on a scratch cluster with --install",
				}
			}
		}
		return nil
	case a.opt.Install == nil:
		return &arena.Unsupported{
			Reason: fmt.Sprintf("the cluster is measured as it is, as contender %s", ThisClusterID),
			Remedy: "let cnibench install contenders on a scratch cluster with --install",
		}
	}
	return a.opt.Install.Supports(c)
}

// HasPath implements arena.Arena.
func (a *Arena) HasPath(c *contender.Contender, path string) error {
	const servicePath = "steps of the path service"
	switch path {
	case arena.PathSameNode:
		return nil
	case arena.PathPod, arena.PathHost:
		if len(a.list) > 1 {
			return nil
		}
		return &arena.Unsupported{
			Reason: fmt.Sprintf("only node %s is used: there is no way to another one", a.list[0]),
			Remedy: "give two nodes with --nodes; steps of the paths same-node and service run here",
		}
	case arena.PathService:
		if c.ID == HostID {
			return &arena.Unsupported{
				Reason: "the baseline is the nodes' own network, which has no Services",
				Remedy: "nothing is missing: its figures from pod to pod stand for themselves",
			}
		}
		if missing := a.lacking[servicePath]; len(missing) > 0 {
			return errRights(missing)
		}
		return nil
	}
	return &arena.Unsupported{
		Reason: fmt.Sprintf("a cluster has no path %q", path),
		Remedy: fmt.Sprintf("it has %s, %s, %s and %s", arena.PathPod, arena.PathService, arena.PathSameNode, arena.PathHost),
	}
}

// Environment implements arena.Arena: the version of Kubernetes, and versions of kernel,
// kubelet and runtime on every node that is used, without the nodes' own names.
func (a *Arena) Environment() result.Environment {
	env := result.Environment{}
	set := func(key, value string) {
		if value != "" {
			env["kube."+key] = value
		}
	}
	if a.cl.Version != nil {
		set("version", a.cl.Version.GitVersion)
	}
	set("cni.product", a.thisCluster.Product)
	set("cni.version", a.thisCluster.Version)
	set("cni.transport", a.thisCluster.Datapath.Transport)
	image, _ := a.cl.image()
	set("image", image)
	set("service", strings.TrimSpace(a.opt.Service))
	set("nodes", fmt.Sprint(len(a.list)))
	for _, n := range a.list {
		for key, value := range nodeFacts(n.info) {
			set(n.name+"."+key, value)
		}
		if !a.opt.Anonymous && n.realName != n.name {
			set(n.name+result.NameKey, n.realName)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, value := range a.facts {
		set(key, value)
	}
	return env
}

// note keeps a fact that a network showed, for Environment.
func (a *Arena) note(key, value string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.facts[key] = value
}

// hostAllowed returns the result of hostNetwork, which it calls until that has a result.
func (a *Arena) hostAllowed(ctx context.Context) error {
	a.hostMu.Lock()
	defer a.hostMu.Unlock()
	if !a.hostKnown {
		a.hostErr = a.hostNetwork(ctx)
		a.hostKnown = a.hostErr == nil || arena.AsUnsupported(a.hostErr) != nil
	}
	return a.hostErr
}

// hostNetwork makes a dry run of a pod in the host network. It returns an
// *arena.Unsupported if Pod Security, another policy or a quota refuses such a pod.
func (a *Arena) hostNetwork(ctx context.Context) (err error) {
	run := a.cl.runName()
	if len(a.opt.Within) == 0 {
		defer func() { // also after an error: the namespace may exist, and only the answer was lost
			if left := a.cl.removeNamespaces(context.WithoutCancel(ctx), run); left != nil {
				err = errors.Join(err, left)
			}
		}()
	}
	namespace, err := a.cl.ensureNamespace(ctx, run)
	if err != nil {
		return err
	}
	pod, err := podPlan{namespace: namespace, name: "host", node: a.list[0], hostNetwork: true, privileged: a.opt.Privileged}.object(run, a.cl)
	if err == nil {
		err = a.cl.do(ctx, "ask for a pod in the host network", func(ctx context.Context) error {
			_, err := a.cl.Client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		})
	}
	if err = explainRefusal(err, hostPods, ""); arena.AsUnsupported(err) == nil && (apierrors.IsForbidden(err) || apierrors.IsInvalid(err)) {
		return &arena.Unsupported{
			Reason: err.Error(),
			Remedy: "have what refuses it let pods be made in namespaces labelled " + labelManaged + "=" + managedBy + "; a quota may want --pod-cpu and --pod-memory",
		}
	}
	return err
}
