package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/sysmon"
)

const (
	upPatience = 5 * time.Minute // until the pods run, their image pulled
	upPoll     = 300 * time.Millisecond
	// settlePatience is how long a pod network may take until packets of new
	// pods pass, before the measurement looks for itself.
	settlePatience = 20 * time.Second
)

// Up implements arena.Arena. Below the pods there is the contender: installed
// first, where it is not simply there.
func (a *Arena) Up(ctx context.Context, c *contender.Contender, _ string) (_ arena.Network, err error) {
	if err := a.tidy(ctx); err != nil {
		return nil, err
	}
	n := &network{arena: a, cl: a.cl, contender: c, run: a.cl.runName()}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Down(context.WithoutCancel(ctx)))
		}
	}()
	n.made = true
	if n.namespace, err = a.cl.place(ctx, n.run); err != nil {
		return nil, err
	}
	if n.lease, err = a.cl.hold(ctx, n.namespace, leaseName, n.run); err != nil {
		return nil, err
	}
	if a.opt.Install != nil && c.ID != HostID {
		n.installed = true
		if err := a.opt.Install.Install(ctx, a.cl, c); err != nil {
			return nil, fmt.Errorf("install %s: %w", c.ID, err)
		}
	}
	if err := n.populate(ctx); err != nil {
		return nil, err
	}
	if err := n.equipped(ctx); err != nil {
		return nil, err
	}
	if err := n.findUplink(ctx); err != nil {
		return nil, err
	}
	n.settle(ctx)
	return n, nil
}

// populate makes a pod in the host network and one of the contender's on every
// node. The baseline's are in the host network too, so that as much runs on a
// node as beside any other contender.
func (n *network) populate(ctx context.Context) error {
	baseline := n.contender.ID == HostID
	var nodePods, pods []podPlan
	for _, at := range n.arena.list {
		nodePods = append(nodePods, podPlan{namespace: n.namespace, name: at.name, node: at, hostNetwork: true, privileged: n.arena.opt.Privileged})
		pods = append(pods, podPlan{namespace: n.namespace, name: at.name + "-pod1", node: at, hostNetwork: baseline})
	}
	err := n.make(ctx, nodePods)
	if refused := arena.AsUnsupported(err); refused != nil && !baseline {
		n.noHost = refused
	} else if err != nil {
		return err
	}
	if err := n.make(ctx, pods); err != nil {
		return err
	}
	asked := slices.Clone(pods)
	if n.noHost == nil {
		asked = append(asked, nodePods...)
	}
	made, err := n.cl.await(ctx, n.namespace, n.arena.list, podNames(asked)...)
	if err != nil {
		return err
	}
	for _, plan := range pods {
		n.pods = append(n.pods, n.endpoint(plan.name, plan.node, made[plan.name]))
	}
	n.strangers = strangers(made)
	for i, plan := range nodePods {
		p := made[plan.name]
		if n.noHost != nil {
			p = made[pods[i].name] // which sees the node's CPUs and memory as well
		}
		n.nodes = append(n.nodes, n.endpoint(plan.name, plan.node, p))
	}
	return nil
}

// strangers are the containers that something in the cluster has added to pods of ours, such
// as a mesh that asks nobody.
func strangers(pods map[string]*corev1.Pod) []string {
	var names []string
	for _, p := range pods {
		for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
			if c.Name != container && !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// podNames are the names of the pods.
func podNames(plans []podPlan) []string {
	var names []string
	for _, plan := range plans {
		names = append(names, plan.name)
	}
	return names
}

// policies is what the API server says where Pod Security, an admission policy,
// a webhook or OpenShift's constraints refuse a pod. Quotas, which are as
// forbidding, say nothing about what it is.
var policies = []string{"violates PodSecurity", "denied request", "denied the request", "security context constraint"}

// policed says that a policy refused it.
func policed(err error) bool {
	return err != nil && slices.ContainsFunc(policies, func(text string) bool { return strings.Contains(err.Error(), text) })
}

// noHost makes of a pod in the host network that a policy refuses what that
// means.
func noHost(err error) error {
	if !policed(err) {
		return err
	}
	return &arena.Unsupported{
		Reason: fmt.Sprintf("the cluster refuses pods in the host network: %v", err),
		Remedy: "have Pod Security or the policy that refuses it let namespaces labelled " + labelManaged + "=" + managedBy + " pass",
	}
}

// make asks for the pods, all at once.
func (n *network) make(ctx context.Context, plans []podPlan) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, plan := range plans {
		group.Go(func() error {
			err := n.cl.makePod(ctx, n.run, plan)
			if plan.hostNetwork {
				return noHost(err)
			}
			return err
		})
	}
	return group.Wait()
}

// makePod asks for the pod. One that an attempt before has made, whose answer
// was lost, is ours.
func (cl *Cluster) makePod(ctx context.Context, run string, plan podPlan) error {
	pod, err := plan.object(run, &cl.Options)
	if err != nil {
		return err
	}
	return cl.do(ctx, fmt.Sprintf("make pod %s on node %s", plan.name, plan.node), func(ctx context.Context) error {
		_, err := cl.Client.CoreV1().Pods(plan.namespace).Create(ctx, pod, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		there, err := cl.Client.CoreV1().Pods(plan.namespace).Get(ctx, plan.name, metav1.GetOptions{})
		if err == nil && there.Labels[labelRun] != run {
			err = fmt.Errorf("namespace %s has a pod of that name that is not of this run; remove it, or give another namespace", plan.namespace)
		}
		return err
	})
}

// await waits until the named pods of the namespace run, and returns them by
// name. Its error says what keeps one from it, such as a node that does not
// answer.
func (cl *Cluster) await(ctx context.Context, namespace string, nodes []*node, names ...string) (map[string]*corev1.Pod, error) {
	var looked time.Time
	var running map[string]*corev1.Pod
	var waiting []corev1.Pod
	err := wait.PollUntilContextTimeout(ctx, upPoll, upPatience, true, func(context.Context) (bool, error) {
		list, err := cl.pods(ctx, namespace)
		if err != nil {
			return false, err
		}
		running, waiting = map[string]*corev1.Pod{}, nil
		for i := range list {
			p := &list[i]
			if !slices.Contains(names, p.Name) {
				continue
			}
			up, err := judgePod(p)
			if err != nil {
				return false, err
			}
			if up {
				running[p.Name] = p
			} else {
				waiting = append(waiting, *p)
			}
		}
		if len(running) == len(names) {
			return true, nil
		}
		if time.Since(looked) > lostPoll {
			looked = time.Now()
			return false, cl.silent(ctx, nodes)
		}
		return false, nil
	})
	if wait.Interrupted(err) && !errors.Is(ctx.Err(), context.Canceled) {
		err = fmt.Errorf("after %v %d of %d pods run: %s", upPatience, len(running), len(names), strings.Join(cl.stuck(ctx, waiting), "; "))
	}
	return running, err
}

func (cl *Cluster) pods(ctx context.Context, namespace string) ([]corev1.Pod, error) {
	list, err := ask(ctx, cl, "list pods of "+namespace, func(ctx context.Context) (*corev1.PodList, error) {
		return cl.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// stuck is what the cluster says of pods that don't come to run: their last
// warning, such as a pod network that gives them no address.
func (cl *Cluster) stuck(ctx context.Context, pods []corev1.Pod) []string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tryTimeout)
	defer cancel()
	var texts []string
	for _, p := range pods {
		text := fmt.Sprintf("%s on node %s is %s", p.Name, p.Spec.NodeName, strings.ToLower(string(p.Status.Phase)))
		if events, err := cl.Client.CoreV1().Events(p.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=Warning,involvedObject.name=" + p.Name}); err == nil && len(events.Items) > 0 {
			last := events.Items[len(events.Items)-1]
			text += because(last.Reason, last.Message)
		}
		texts = append(texts, text)
	}
	return texts
}

// endpoint is the pod as a place where commands run.
func (n *network) endpoint(name string, at *node, p *corev1.Pod) *endpoint {
	e := &endpoint{cl: n.cl, namespace: p.Namespace, pod: p.Name, uid: string(p.UID), name: name, node: at, addrs: podAddrs(p), ctx: n.ctx}
	if n.shared() {
		for cpu := range at.cpus {
			e.cpus = append(e.cpus, cpu)
		}
	}
	n.lease.tell(e)
	return e
}

// shared says that some of the nodes are one machine, by the number that its
// kernel drew when it started.
func (n *network) shared() bool {
	list := n.arena.list
	for i, x := range list {
		for _, y := range list[i+1:] {
			if x.info.BootID != "" && x.info.BootID == y.info.BootID {
				return true
			}
		}
	}
	return false
}

// always are programs that workloads use without saying so.
var always = []string{"sh", "cat"}

// equipped checks that the image has what the steps run.
func (n *network) equipped(ctx context.Context) error {
	argv := slices.Concat([]string{n.cl.program, "agent", "have"}, always, n.arena.opt.Programs)
	var out bytes.Buffer
	if err := runAt(ctx, n.pods[0], &out, argv...); err != nil {
		return fmt.Errorf("what the image %s has: %w", n.arena.opt.Image, err)
	}
	var have agent.Have
	if err := json.Unmarshal(out.Bytes(), &have); err != nil {
		return fmt.Errorf("what the image %s has: %w", n.arena.opt.Image, err)
	}
	n.arena.note("image.cnibench", have.Version)
	if len(have.Missing) == 0 {
		return nil
	}
	return &arena.Unsupported{
		Reason: fmt.Sprintf("the image %s lacks %s", n.arena.opt.Image, strings.Join(have.Missing, ", ")),
		Remedy: "take the image that `make image` builds, or add the programs to yours",
	}
}

// runAt runs a short command to its end.
func runAt(ctx context.Context, e arena.Endpoint, out *bytes.Buffer, argv ...string) error {
	p, err := e.Start(ctx, host.Command{Argv: argv, Stdout: out, Aside: true})
	if err != nil {
		return err
	}
	return p.Wait()
}

// findUplink finds, in each node's own network, the interface that holds the
// node's address; without the host network, that of the pod.
func (n *network) findUplink(ctx context.Context) error {
	found := make([]agent.Interface, len(n.nodes))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, e := range n.nodes {
		group.Go(func() error {
			a, err := hire(groupCtx, e)
			if err != nil {
				return err
			}
			defer dismiss(a)
			hello, err := a.Hello(groupCtx, netip.Addr{})
			if err != nil {
				return err
			}
			want := e.node.addr
			if n.noHost != nil {
				want = e.Addr()
			}
			for _, in := range hello.Interfaces {
				if slices.ContainsFunc(in.Addrs, func(p netip.Prefix) bool { return p.Addr() == want }) {
					found[i] = in
					return nil
				}
			}
			return fmt.Errorf("node %s: no interface holds its address %s", e.node, want)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	n.uplink, n.uplinkMTU = found[0].Name, found[0].MTU
	for i, in := range found {
		n.arena.note(fmt.Sprintf("node%d.uplink", i+1), in.Name)
		n.arena.note(fmt.Sprintf("node%d.uplink.mtu", i+1), fmt.Sprint(in.MTU))
		n.sameUplink = append(n.sameUplink, in.Name == n.uplink)
	}
	return nil
}

// hire starts an agent in the pod.
func hire(ctx context.Context, e *endpoint) (*agent.Client, error) {
	return agent.Start(ctx, e, e.cl.program, map[string]string{"endpoint": e.name, "node": e.Node()}, sysmon.ScopePod)
}

// dismiss ends it. What does not end by itself is killed with the network.
func dismiss(a *agent.Client) { _ = a.Close() }

// settle gives a pod network the time that it takes until new pods reach each
// other. Whether they do is not judged here.
func (n *network) settle(ctx context.Context) {
	if len(n.pods) < 2 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, settlePatience)
	defer cancel()
	client, server := n.pods[0], n.pods[1]
	at, err := hire(ctx, server)
	if err != nil {
		return
	}
	defer dismiss(at)
	from, err := hire(ctx, client)
	if err != nil {
		return
	}
	defer dismiss(from)
	port, err := at.Echo(ctx, server.Addr())
	for err == nil && ctx.Err() == nil && from.Reach(ctx, server.Addr(), port) != nil {
		time.Sleep(50 * time.Millisecond)
	}
}
