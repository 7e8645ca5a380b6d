package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
)

// Wanted says which pods OpenPods makes on each node.
type Wanted struct {
	Host bool // in the host network
	Pod  bool // in the pod network
	// Max is the highest number of nodes, evenly of all zones; 0: all that Options choose.
	// Without names, label or pod in the options these are all nodes on which pods can run.
	Max int
	// Some says that the task goes on without nodes whose pods do not start.
	Some bool
}

// Pods are pods with this program on nodes of a cluster, for tasks that look at the cluster
// as it is. They need no image of their own: any with a shell does. They exist until
// Close, or until 30 s after this program has died.
type Pods struct {
	// Nodes are the nodes, in the order of Options.Nodes or by name.
	Nodes []PodNode
	// Absent says of nodes why no pod of theirs runs.
	Absent []string
	// NoHost is why no pod may use the host network; nil if pods may, or need not.
	NoHost *arena.Unsupported

	cl        *Cluster
	run       string
	namespace string
	lease     *lease
	ctx       context.Context // of every command in the pods
	end       context.CancelFunc
}

// PodNode is a node with its pods.
type PodNode struct {
	Name     string     // in reports: "node1"
	RealName string     // in the cluster
	Addr     netip.Addr // internal
	Zone     string     // topology.kubernetes.io/zone; "" for none
	Role     string     // "control-plane" or "worker"
	Info     corev1.NodeSystemInfo
	Host     arena.Endpoint // in the host network; nil if not wanted or refused
	Pod      arena.Endpoint // in the pod network; nil if not wanted
}

// OpenPods makes the pods and returns when this program runs in all of them. After an error
// nothing is left. Errors: those of New.
func OpenPods(ctx context.Context, o Options, want Wanted) (_ *Pods, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	cl, err := Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	return cl.openPods(ctx, want)
}

func (cl *Cluster) openPods(ctx context.Context, want Wanted) (_ *Pods, err error) {
	if _, err := cl.checkRights(ctx); err != nil {
		return nil, err
	}
	if err := (leftovers{cl}).checkUnused(ctx); err != nil {
		return nil, err
	}
	tolerated, err := tolerations(cl.Options.Tolerations)
	if err != nil {
		return nil, err
	}
	nodes, err := cl.allNodes(ctx, tolerated)
	if err != nil {
		return nil, err
	}
	nodes = evenly(nodes, want.Max)
	p := &Pods{cl: cl, run: cl.runName()}
	p.ctx, p.end = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close(context.WithoutCancel(ctx)))
		}
	}()
	p.namespace = p.run
	if within := cl.Options.Within; len(within) > 0 {
		p.namespace = within[0]
	}
	if _, err = cl.ensureNamespace(ctx, p.run); err != nil {
		return nil, err
	}
	if p.lease, err = cl.holdLease(ctx, p.namespace, leaseName, p.run); err != nil {
		return nil, err
	}
	if err = cl.settleImage(ctx, p.run, p.namespace, cl.Options.privileged(), nodes...); err != nil {
		return nil, err
	}
	if err = p.make(ctx, nodes, want); err != nil {
		return nil, err
	}
	return p, nil
}

// evenly returns at most so many of the nodes, of each zone as many as of the others; 0: all.
func evenly(nodes []*node, maximum int) []*node {
	if maximum <= 0 || maximum >= len(nodes) {
		return nodes
	}
	inZone := map[string]int{}
	rank := map[*node]int{} // within its zone
	for _, n := range nodes {
		rank[n] = inZone[n.zone]
		inZone[n.zone]++
	}
	out := slices.Clone(nodes)
	slices.SortStableFunc(out, func(a, b *node) int { return cmp.Compare(rank[a], rank[b]) })
	return numberNodes(out[:maximum])
}

// ListNodes returns the nodes on which OpenPods would make pods. It makes nothing.
func ListNodes(ctx context.Context, o Options, maximum int) ([]PodNode, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	nodes, err := usableNodes(ctx, o)
	if err != nil {
		return nil, err
	}
	var out []PodNode
	for _, n := range evenly(nodes, maximum) {
		out = append(out, n.describe())
	}
	return out, nil
}

func (n *node) describe() PodNode {
	return PodNode{Name: n.name, RealName: n.realName, Addr: n.addr, Zone: n.zone, Role: n.role, Info: n.info}
}

// make makes the pods and fills in Nodes.
func (p *Pods) make(ctx context.Context, nodes []*node, want Wanted) error {
	var hosts, pods []podPlan
	for _, at := range nodes {
		if want.Host {
			hosts = append(hosts, podPlan{namespace: p.namespace, name: at.name, node: at, hostNetwork: true, privileged: p.cl.Options.Privileged, onNode: p.cl.Options.OnNodes})
		}
		if want.Pod {
			pods = append(pods, podPlan{namespace: p.namespace, name: at.name + "-pod1", node: at})
		}
	}
	err := p.cl.makePods(ctx, p.run, hosts)
	if p.NoHost = arena.AsUnsupported(err); p.NoHost != nil && want.Pod {
		hosts = nil
	} else if err != nil {
		return err
	}
	if err := p.cl.makePods(ctx, p.run, pods); err != nil {
		return err
	}
	var without *missing
	if want.Some {
		without = &missing{why: map[string]string{}}
	}
	made, err := p.cl.awaitBut(ctx, p.lease, p.namespace, nodes, without, append(podNames(hosts), podNames(pods)...)...)
	if err != nil {
		return err
	}
	place := func(name string, at *node) arena.Endpoint {
		e := made[name]
		if e == nil {
			return nil
		}
		e.node, e.ctx = at, p.ctx
		return e
	}
	for _, at := range nodes {
		one := at.describe()
		one.Host, one.Pod = place(at.name, at), place(at.name+"-pod1", at)
		for _, name := range []string{at.name, at.name + "-pod1"} {
			if without.has(name) {
				p.Absent = append(p.Absent, at.realName+": "+without.why[name])
			}
		}
		if one.Host != nil || one.Pod != nil {
			p.Nodes = append(p.Nodes, one)
		}
	}
	return nil
}

// Cluster returns the connection, for questions to the API server.
func (p *Pods) Cluster() *Cluster { return p.cl }

// Agent starts an agent at one of the pods.
func (p *Pods) Agent(ctx context.Context, at arena.Endpoint) (*agent.Client, error) {
	e, ok := at.(*endpoint)
	if !ok {
		return nil, fmt.Errorf("%s is no pod", at.Name())
	}
	return startAgent(ctx, e)
}

// Close ends every command in the pods, removes them, and waits until they are gone.
func (p *Pods) Close(ctx context.Context) error {
	p.end()
	p.lease.stop()
	if len(p.cl.Options.Within) > 0 {
		return p.cl.clearRun(ctx, p.run)
	}
	return p.cl.removeNamespaces(ctx, p.run)
}
