package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
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
	"github.com/cnibench/cnibench/internal/unit"
)

const (
	upPatience = 5 * time.Minute // until the pods run, with the pull of their image
	upPoll     = 300 * time.Millisecond
	// settlePatience is how long Up waits until new pods reach each other. After that,
	// the measurement checks that itself.
	settlePatience = 20 * time.Second
)

// Up implements arena.Arena. It installs the contender if necessary, and then makes pods.
func (a *Arena) Up(ctx context.Context, c *contender.Contender, _ string) (_ arena.Network, err error) {
	if err := a.removeRemaining(ctx); err != nil {
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
	if n.namespace, err = a.cl.ensureNamespace(ctx, n.run); err != nil {
		return nil, err
	}
	if n.lease, err = a.cl.holdLease(ctx, n.namespace, leaseName, n.run); err != nil {
		return nil, err
	}
	if a.opt.Install != nil && c.ID != HostID {
		n.installed = true
		if err := a.opt.Install.Install(ctx, a.cl, c); err != nil {
			return nil, fmt.Errorf("install %s: %w", c.ID, err)
		}
	}
	if err := a.cl.settleImage(ctx, n.run, n.namespace, a.opt.privileged(), a.list...); err != nil {
		return nil, err
	}
	if err := n.populate(ctx); err != nil {
		return nil, err
	}
	if err := n.checkImage(ctx); err != nil {
		return nil, err
	}
	if err := n.findUplink(ctx); err != nil {
		return nil, err
	}
	n.settle(ctx)
	return n, nil
}

// populate makes a pod in the host network and a pod in the contender's network on every
// node. For the baseline, both are in the host network, so that every contender has the
// same number of pods.
func (n *network) populate(ctx context.Context) error {
	baseline := n.contender.ID == HostID
	var nodePods, pods []podPlan
	for _, at := range n.arena.list {
		nodePods = append(nodePods, podPlan{namespace: n.namespace, name: at.name, node: at, hostNetwork: true, privileged: n.arena.opt.Privileged, onNode: n.arena.opt.OnNodes})
		pods = append(pods, podPlan{namespace: n.namespace, name: at.name + "-pod1", node: at, hostNetwork: baseline})
	}
	err := n.makePods(ctx, nodePods)
	if refused := arena.AsUnsupported(err); refused != nil && !baseline && !n.arena.opt.OnNodes {
		n.noHost = refused
	} else if err != nil {
		return err
	}
	if err := n.makePods(ctx, pods); err != nil {
		return err
	}
	plans := slices.Clone(pods)
	if n.noHost == nil {
		plans = append(plans, nodePods...)
	}
	made, err := n.cl.await(ctx, n.lease, n.namespace, n.arena.list, podNames(plans)...)
	if err != nil {
		return err
	}
	for _, plan := range pods {
		n.pods = append(n.pods, n.endpoint(plan.name, plan.node, made[plan.name]))
	}
	n.added = addedContainers(made)
	for i, plan := range nodePods {
		p := made[plan.name]
		if n.noHost != nil {
			p = made[pods[i].name] // this pod sees the node's CPUs and memory, too
		}
		n.nodes = append(n.nodes, n.endpoint(plan.name, plan.node, p))
	}
	return nil
}

// addedContainers returns the names of containers that the cluster has added to our pods,
// e.g. the proxy of a service mesh.
func addedContainers(pods map[string]*endpoint) []string {
	var names []string
	for _, p := range pods {
		for _, name := range p.containers {
			if name != container && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// podNames returns the names of the pods.
func podNames(plans []podPlan) []string {
	var names []string
	for _, plan := range plans {
		names = append(names, plan.name)
	}
	return names
}

// refusals are texts of the API server's error if Pod Security, an admission policy, a
// webhook or OpenShift's constraints refuse a pod. Other errors, such as those of quotas,
// are forbidden, too, but refuse no property of the pod.
var refusals = []string{"violates PodSecurity", "denied request", "denied the request", "security context constraint"}

// refusedByPolicy reports whether a policy refused the pod.
func refusedByPolicy(err error) bool {
	return err != nil && slices.ContainsFunc(refusals, func(text string) bool { return strings.Contains(err.Error(), text) })
}

// explainRefusal turns a policy's refusal of such pods into an *arena.Unsupported, whose
// remedy ends with otherwise. It returns other errors unchanged.
func explainRefusal(err error, pods, otherwise string) error {
	if !refusedByPolicy(err) {
		return err
	}
	return &arena.Unsupported{
		Reason: fmt.Sprintf("the cluster refuses %s: %v", pods, err),
		Remedy: "have Pod Security or the policy that refuses it let namespaces labelled " + labelManaged + "=" + managedBy + " pass" + otherwise,
	}
}

// hostPods are pods that a policy may refuse.
const hostPods = "pods in the host network"

// makePods makes the pods, all at the same time.
func (n *network) makePods(ctx context.Context, plans []podPlan) error {
	return n.cl.makePods(ctx, n.run, plans)
}

func (cl *Cluster) makePods(ctx context.Context, run string, plans []podPlan) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxRequests)
	for _, plan := range plans {
		group.Go(func() error {
			err := cl.makePod(ctx, run, plan)
			if plan.hostNetwork {
				return explainRefusal(err, hostPods, "")
			}
			return err
		})
	}
	return group.Wait()
}

// makePod makes the pod. It is no error if the run has made it before: the answer to an
// earlier try may have been lost.
func (cl *Cluster) makePod(ctx context.Context, run string, plan podPlan) error {
	pod, err := plan.object(run, cl)
	if err != nil {
		return err
	}
	err = cl.do(ctx, fmt.Sprintf("make pod %s on node %s", plan.name, plan.node), func(ctx context.Context) error {
		_, err := cl.Client.CoreV1().Pods(plan.namespace).Create(ctx, pod, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		old, err := cl.Client.CoreV1().Pods(plan.namespace).Get(ctx, plan.name, metav1.GetOptions{})
		if err == nil && old.Labels[labelRun] != run {
			err = fmt.Errorf("namespace %s has a pod of that name that is not of this run; remove it, or give another namespace", plan.namespace)
		}
		return err
	})
	if refusedByPolicy(err) && !plan.hostNetwork && !plan.onNode && !plan.restricted {
		plan.restricted = true
		if cl.makePod(ctx, run, plan) == nil {
			cl.Options.log("pod %s runs as an ordinary user with a read-only root, which is all that namespace %s lets pods", plan.name, plan.namespace)
			return nil
		}
	}
	return err
}

// describeCarry says how the pod got this program, for a run's record.
func describeCarry(e *endpoint) string {
	if !e.carried {
		return ""
	}
	return fmt.Sprint(e.cl.cargo.bytes.Load())
}

// await waits until the named pods of the namespace run and have this program, and returns
// them by name, as places on no network. held notifies each as soon as it runs. The error
// says why a pod does not run, e.g. because its node does not answer.
func (cl *Cluster) await(ctx context.Context, held *lease, namespace string, nodes []*node, names ...string) (map[string]*endpoint, error) {
	return cl.awaitBut(ctx, held, namespace, nodes, nil, names...)
}

// missing are pods that a task can do without, each with the reason why it does not run.
type missing struct {
	mu  sync.Mutex
	why map[string]string
}

// missingPatience is how long pods that a task can do without are waited for once half of all
// pods run.
const missingPatience = time.Minute

// excuse notes that the pod does not run and returns nil. Without m it returns the error.
func (m *missing) excuse(pod string, err error) error {
	if m == nil || err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.why[pod] = err.Error()
	return nil
}

func (m *missing) has(pod string) bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.why[pod] != ""
}

// awaitBut does the same as await. It goes on without pods that do not run if without is not
// nil, and notes them there.
func (cl *Cluster) awaitBut(ctx context.Context, held *lease, namespace string, nodes []*node, without *missing, names ...string) (map[string]*endpoint, error) {
	group, groupCtx := errgroup.WithContext(ctx)
	made := map[string]*endpoint{}
	began := time.Now()
	_, err := cl.awaitRunning(groupCtx, namespace, nodes, without, func(p *corev1.Pod) {
		e := &endpoint{cl: cl, namespace: p.Namespace, pod: p.Name, uid: string(p.UID), name: p.Name, node: &node{name: p.Spec.NodeName, realName: p.Spec.NodeName}, addrs: podAddrs(p), ctx: held.ctx}
		for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
			e.containers = append(e.containers, c.Name)
		}
		made[p.Name] = e
		group.Go(func() error { return without.excuse(p.Name, e.equip(groupCtx, held)) })
	}, names...)
	if equipErr := group.Wait(); equipErr != nil {
		err = equipErr // it has ended the wait
	}
	var sent int64
	for name, e := range made {
		if without.has(name) {
			delete(made, name)
		}
		sent += e.carriedBytes
	}
	if sent > 0 && err == nil {
		cl.Options.log("%s run this program, which was carried there: %v, %v after they were asked for", unit.Plural(len(made), "pod"), unit.Bytes(sent), time.Since(began).Round(100*time.Millisecond))
	}
	return made, err
}

// awaitRunning waits until the named pods of the namespace run, and calls up once for each
// that does. Pods in without are not waited for.
func (cl *Cluster) awaitRunning(ctx context.Context, namespace string, nodes []*node, without *missing, up func(*corev1.Pod), names ...string) (map[string]*corev1.Pod, error) {
	told := map[string]bool{}
	var looked time.Time
	var half time.Time // when half of the pods ran
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
			if !slices.Contains(names, p.Name) || without.has(p.Name) {
				continue
			}
			runs, err := podRuns(p)
			if err != nil {
				if err := without.excuse(p.Name, err); err != nil {
					return false, err
				}
				continue
			}
			if runs {
				running[p.Name] = p
				if up != nil && !told[p.Name] {
					told[p.Name] = true
					up(p)
				}
			} else {
				waiting = append(waiting, *p)
			}
		}
		if without != nil && half.IsZero() && 2*len(running) >= len(names) {
			half = time.Now()
		}
		if !half.IsZero() && time.Since(half) > missingPatience {
			for i, text := range cl.lastWarnings(ctx, waiting) {
				_ = without.excuse(waiting[i].Name, errors.New(text))
			}
			waiting = nil
		}
		if without == nil && len(running) == len(names) || without != nil && len(waiting) == 0 && len(running) > 0 {
			return true, nil
		}
		if without == nil && time.Since(looked) > lostPoll {
			looked = time.Now()
			return false, cl.checkNodes(ctx, nodes)
		}
		return false, nil
	})
	if wait.Interrupted(err) && !errors.Is(ctx.Err(), context.Canceled) {
		err = fmt.Errorf("after %v %d of %d pods run: %s", upPatience, len(running), len(names), strings.Join(cl.lastWarnings(ctx, waiting), "; "))
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

// lastWarnings returns, for each pod, its phase and its last warning event, such as that
// the pod network gave it no address.
func (cl *Cluster) lastWarnings(ctx context.Context, pods []corev1.Pod) []string {
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

// endpoint returns the pod as a place where commands run.
func (n *network) endpoint(name string, at *node, p *endpoint) *endpoint {
	e := *p // a pod can have several names: without the host network it is a node, too
	e.name, e.node, e.ctx = name, at, n.ctx
	if n.shared() {
		for cpu := range at.cpus {
			e.cpus = append(e.cpus, cpu)
		}
	}
	return &e
}

// shared reports whether two of the nodes are one machine: they have the same boot ID.
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

// common are programs that workloads use and do not list.
var common = []string{"sh", "cat"}

// checkImage checks that the image has the programs that the steps run.
func (n *network) checkImage(ctx context.Context) error {
	image, _ := n.cl.image()
	argv := slices.Concat([]string{Program, "agent", "have"}, common, n.arena.opt.Programs)
	out, err := host.Output(ctx, n.pods[0], host.Command{Argv: argv, OffMeasuredCPUs: true})
	if err != nil {
		return fmt.Errorf("what the image %s has: %w", image, err)
	}
	var have agent.Have
	if err := json.Unmarshal(out, &have); err != nil {
		return fmt.Errorf("what the image %s has: %w", image, err)
	}
	n.arena.note("image.cnibench", have.Version)
	n.arena.note("image.carried", describeCarry(n.pods[0]))
	if len(have.Missing) == 0 {
		return nil
	}
	return &arena.Unsupported{
		Reason: fmt.Sprintf("the image %s lacks %s, which the steps run", image, strings.Join(have.Missing, ", ")),
		Remedy: "take the image that `make image` builds, with --image; or leave --image out: then this program's own server and sender take their place where a step allows that",
	}
}

// findUplink finds, in each node's own network, the interface with the node's address;
// without the host network, the pod's interface.
func (n *network) findUplink(ctx context.Context) error {
	found := make([]agent.Interface, len(n.nodes))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, e := range n.nodes {
		group.Go(func() error {
			a, err := startAgent(groupCtx, e)
			if err != nil {
				return err
			}
			defer closeAgent(a)
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

// startAgent starts an agent in the pod.
func startAgent(ctx context.Context, e *endpoint) (*agent.Client, error) {
	return agent.Start(ctx, e, Program, map[string]string{"endpoint": e.name, "node": e.Node()}, sysmon.ScopePod)
}

// closeAgent ends the agent. An agent that does not end is killed with the network.
func closeAgent(a *agent.Client) { _ = a.Close() }

// settle waits until two new pods reach each other, at most for settlePatience. It
// reports no error: the measurement checks that itself.
func (n *network) settle(ctx context.Context) {
	if len(n.pods) < 2 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, settlePatience)
	defer cancel()
	client, server := n.pods[0], n.pods[1]
	atServer, err := startAgent(ctx, server)
	if err != nil {
		return
	}
	defer closeAgent(atServer)
	atClient, err := startAgent(ctx, client)
	if err != nil {
		return
	}
	defer closeAgent(atClient)
	port, err := atServer.Echo(ctx, server.Addr())
	for err == nil && ctx.Err() == nil && atClient.Reach(ctx, server.Addr(), port) != nil {
		time.Sleep(50 * time.Millisecond)
	}
}
