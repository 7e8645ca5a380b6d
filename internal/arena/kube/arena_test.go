package kube

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ktesting "k8s.io/client-go/testing"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/result"
)

var (
	here     = &contender.Contender{ID: ThisClusterID}
	baseline = &contender.Contender{ID: HostID}
)

func up(t *testing.T, a *Arena, c *contender.Contender) arena.Network {
	t.Helper()
	n, err := a.Up(t.Context(), c, a.Variant(c))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return n
}

func names(list []arena.Endpoint) []string {
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func codes(notes []result.Reason) []string {
	var list []string
	for _, n := range notes {
		list = append(list, n.Code)
	}
	return list
}

func TestUp(t *testing.T) {
	for name, c := range map[string]struct {
		nodes     []runtime.Object
		contender *contender.Contender
		pods      []string
		notes     []string
		lacks     string // path
	}{
		"two nodes":    {[]runtime.Object{testNode("a"), testNode("b")}, here, []string{"node1-pod1", "node2-pod1"}, nil, ""},
		"the baseline": {[]runtime.Object{testNode("a"), testNode("b")}, baseline, []string{"node1-pod1", "node2-pod1"}, nil, arena.PathService},
		"one node":     {[]runtime.Object{testNode("a")}, here, []string{"node1-pod1"}, []string{"one_node"}, arena.PathPod},
		"one machine": {[]runtime.Object{testNode("a"), testNode("b", func(n *corev1.Node) {
			n.Status.NodeInfo.BootID = "a"
			n.Status.NodeInfo.KernelVersion = "6.2.0"
		})}, here, []string{"node1-pod1", "node2-pod1"}, []string{"nodes_share_a_machine", "kernel_differs"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, Options{}, c.nodes...)
			a := b.arena(t)
			if err := a.Supports(t.Context(), c.contender); err != nil {
				t.Fatal(err)
			}
			if left := b.left(t); left != nil {
				t.Errorf("asking has left %v", left)
			}
			n := up(t, a, c.contender)
			if diff := cmp.Diff(c.pods, names(n.Pods())); diff != "" {
				t.Error(diff)
			}
			if got := n.Uplink(); got != "lo" {
				t.Errorf("uplink %q", got)
			}
			if diff := cmp.Diff(c.notes, codes(n.Notes())); diff != "" {
				t.Error(diff)
			}
			for _, path := range []string{arena.PathPod, arena.PathSameNode, arena.PathHost, arena.PathService} {
				refused := a.HasPath(c.contender, path)
				if want := path == c.lacks || len(c.nodes) == 1 && path == arena.PathHost; want != (refused != nil) {
					t.Errorf("path %s: %v", path, refused)
				}
				if refused != nil {
					_ = unsupported(t, refused)
				}
			}
			same, err := n.Pair(t.Context(), arena.PathSameNode)
			if err != nil || same.Client.Node() != same.Server.Node() || same.Client.Name() == same.Server.Name() {
				t.Errorf("same-node pair %+v, %v", same, err)
			}
			if err := n.(*network).Fault(); err != nil {
				t.Errorf("fault: %v", err)
			}
			if err := n.Down(t.Context()); err != nil {
				t.Error(err)
			}
			if left := b.left(t); left != nil {
				t.Errorf("left after down: %v", left)
			}
		})
	}
}

// What a webhook adds to the pods is told, since it is measured along.
func TestPodsThatTheClusterChanges(t *testing.T) {
	b := newBed(t, Options{}, testNode("a"), testNode("b"))
	b.pod = func(p *corev1.Pod) {
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: "mesh-init"})
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "mesh-proxy"})
	}
	notes := up(t, b.arena(t), here).Notes()
	if len(notes) != 1 || notes[0].Code != "pods_changed" || !strings.Contains(notes[0].Text, "(mesh-init, mesh-proxy)") {
		t.Errorf("%+v", notes)
	}
}

func TestCommands(t *testing.T) {
	b := newBed(t, Options{}, testNode("a"), testNode("b"))
	n := up(t, b.arena(t), here)
	e := n.Pods()[1]
	b.broken.Store(2) // the API server is away for a moment
	var out bytes.Buffer
	p, err := e.Start(t.Context(), host.Command{Argv: []string{"cat"}, Stdin: strings.NewReader("hello"), Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil || out.String() != "hello" {
		t.Errorf("cat printed %q, %v", out.String(), err)
	}
	sleeper, err := e.Start(context.Background(), host.Command{Argv: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Down(t.Context()); err != nil {
		t.Error(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- sleeper.Wait() }()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("sleep ended well")
		}
	case <-time.After(30 * time.Second):
		t.Error("a command outlived its network")
	}
}

func TestPodsThatAreGone(t *testing.T) {
	b := newBed(t, Options{}, testNode("a"), testNode("b"))
	n := up(t, b.arena(t), here).(*network)
	if err := b.client.CoreV1().Pods(n.run).Delete(t.Context(), "node2-pod1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := n.Fault(); err == nil || !strings.Contains(err.Error(), "pod node2-pod1 on node b (node2) is gone") {
		t.Errorf("fault: %v", err)
	}
	b.broken.Store(1 << 30)
	_, err := n.pods[1].Start(t.Context(), host.Command{Argv: []string{"true"}})
	b.broken.Store(0)
	if err == nil || !strings.Contains(err.Error(), "is gone") {
		t.Errorf("a command in a pod that is gone: %v", err)
	}
}

// A pod that was killed for want of memory is named with what helps; the next round has
// new pods.
func TestPodOutOfMemory(t *testing.T) {
	b := newBed(t, Options{Memory: "64Mi"}, testNode("a"), testNode("b"))
	a := b.arena(t)
	n, err := a.Up(t.Context(), here, "")
	if err != nil {
		t.Fatal(err)
	}
	client := n.(*network).pods[0]
	pod, err := b.client.CoreV1().Pods(client.namespace).Get(t.Context(), client.pod, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Status.Phase = corev1.PodFailed
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}}}
	if _, err := b.client.CoreV1().Pods(client.namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := n.Fault(); err == nil || !strings.Contains(err.Error(), "took more memory than it may: give more with --pod-memory") {
		t.Errorf("fault: %v", err)
	}
	if err := n.Down(t.Context()); err != nil {
		t.Error(err)
	}
	if err := up(t, a, here).Fault(); err != nil {
		t.Errorf("the next round: %v", err)
	}
}

func TestNodeThatDied(t *testing.T) {
	b := newBed(t, Options{}, testNode("a"), testNode("b"))
	n := up(t, b.arena(t), here).(*network)
	dead := testNode("b", func(n *corev1.Node) {
		n.Status.Conditions[0].Status = corev1.ConditionUnknown
		n.Status.Conditions[0].Message = "Kubelet stopped posting node status."
	})
	if _, err := b.client.CoreV1().Nodes().Update(t.Context(), dead, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := n.Fault(); err == nil || !strings.Contains(err.Error(), "node b (node2) does not answer: Kubelet stopped") {
		t.Errorf("fault: %v", err)
	}
}

// forbidden is a refusal of the API server.
func forbidden(what string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New(what))
}

// refuseHost makes the cluster refuse the host network as often, -1 always.
func refuseHost(b *bed, times int, why error) {
	b.client.PrependReactor("create", "pods", func(a ktesting.Action) (bool, runtime.Object, error) {
		if !a.(ktesting.CreateAction).GetObject().(*corev1.Pod).Spec.HostNetwork || times == 0 {
			return false, nil, nil
		}
		times--
		return true, nil, why
	})
}

const podSecurity = `violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`

func TestPodSecurityForbidsTheHostNetwork(t *testing.T) {
	b := newBed(t, Options{}, testNode("a"), testNode("b"))
	refuseHost(b, -1, forbidden(podSecurity))
	a := b.arena(t)
	if text := unsupported(t, a.Supports(t.Context(), baseline)); !strings.Contains(text, "violates PodSecurity") {
		t.Error(text)
	}
	_, err := a.Up(t.Context(), baseline, "")
	_ = unsupported(t, err)
	if left := b.left(t); left != nil {
		t.Errorf("left: %v", left)
	}
	// Without the host's pods nodes are looked at through the contender's; the
	// fake's have addresses that no interface is named to hold.
	b.pod = func(p *corev1.Pod) { p.Status.PodIPs = []corev1.PodIP{{IP: "127.0.0.1"}} }
	n := up(t, a, here)
	if diff := cmp.Diff([]string{"no_host_network"}, codes(n.Notes())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"node1", "node2"}, names(n.Nodes())); diff != "" {
		t.Error(diff)
	}
	_, err = n.Pair(t.Context(), arena.PathHost)
	_ = unsupported(t, err)
}

func TestImagesThatDoNotCome(t *testing.T) {
	b := newBed(t, Options{}, testNode("a"), testNode("b"))
	b.pod = func(p *corev1.Pod) {
		p.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImageNeverPull", Message: `Container image "example.org/cnibench:1" is not present with pull policy of Never`},
		}}}}
	}
	begin := time.Now()
	_, err := b.arena(t).Up(t.Context(), here, "")
	if text := unsupported(t, err); !strings.Contains(text, "is not present with pull policy of Never") {
		t.Error(text)
	}
	if time.Since(begin) > upPatience/2 {
		t.Error("it was waited for")
	}
	if left := b.left(t); left != nil {
		t.Errorf("left: %v", left)
	}
}

func TestImagesThatLackPrograms(t *testing.T) {
	b := newBed(t, Options{Programs: []string{"sh", "no-such-qperf"}}, testNode("a"), testNode("b"))
	_, err := b.arena(t).Up(t.Context(), here, "")
	if text := unsupported(t, err); !strings.Contains(text, "lacks no-such-qperf") {
		t.Error(text)
	}
}

func TestRights(t *testing.T) {
	b := newBed(t, Options{}, testNode("a"), testNode("b"))
	b.denied = []string{"create pods/exec", "delete namespaces"}
	_, err := newArena(t.Context(), b.Cluster)
	if text := unsupported(t, err); !strings.Contains(text, "delete namespaces, create pods/exec") || !strings.Contains(text, "cnibench rbac") {
		t.Error(text)
	}
	b.Options.Install, b.denied = &installer{}, []string{"do everything, as --install must (cluster-admin)"}
	_, err = newArena(t.Context(), b.Cluster)
	if text := unsupported(t, err); !strings.Contains(text, "cluster-admin") {
		t.Error(text)
	}
	b.Options.Install, b.denied = nil, []string{"create services"}
	if text := unsupported(t, b.arena(t).HasPath(here, arena.PathService)); !strings.Contains(text, "create services") {
		t.Error(text)
	}
}

func TestWhatAnEarlierRunHasLeft(t *testing.T) {
	old := namespaceFor("cnibench-old", "cnibench-old", "privileged", nil)
	others := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cnibench", Labels: map[string]string{labelManaged: "Helm"}}}
	b := newBed(t, Options{Install: &installer{}}, testNode("a"), old, others) // which removes nothing unasked
	_, err := newArena(t.Context(), b.Cluster)
	if text := unsupported(t, err); !strings.Contains(text, "cnibench-old (made ") || !strings.Contains(text, "cnibench clean --arena kube") {
		t.Error(text)
	}
	did, err := leftovers{b.Cluster}.clean(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&Cleaned{Removed: []string{"cnibench-old"}}, did); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"cnibench"}, b.left(t)); diff != "" {
		t.Error(diff)
	}
}

func TestSupports(t *testing.T) {
	other := &contender.Contender{ID: "cilium"}
	bare := func(n *corev1.Node) {
		n.Status.Conditions[0].Status = corev1.ConditionFalse
		n.Status.Conditions[0].Message = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady"
	}
	a := newBed(t, Options{}, testNode("a", bare), testNode("b", bare)).arena(t)
	if text := unsupported(t, a.Supports(t.Context(), here)); !strings.Contains(text, "no pod network yet") {
		t.Error(text)
	}
	if err := a.Supports(t.Context(), baseline); err != nil {
		t.Error(err)
	}
	if text := unsupported(t, a.Supports(t.Context(), other)); !strings.Contains(text, "--install") {
		t.Error(text)
	}
	with := newBed(t, Options{Install: &installer{}}, testNode("a", bare), testNode("b", bare)).arena(t)
	if err := with.Supports(t.Context(), other); err != nil {
		t.Error(err)
	}
	_ = unsupported(t, with.Supports(t.Context(), here))
}

// installer notes what it is asked to do.
type installer struct {
	calls []string
	err   error
	stays error // why nothing can be taken off
}

func (i *installer) Supports(*contender.Contender) error { return nil }

func (i *installer) Install(_ context.Context, _ *Cluster, c *contender.Contender) error {
	i.calls = append(i.calls, "install "+c.ID)
	return i.err
}

func (i *installer) Effort(context.Context, *Cluster) (map[string]float64, error) {
	i.calls = append(i.calls, "effort")
	return map[string]float64{result.InstallSteps: 2}, nil
}

func (i *installer) Uninstall(_ context.Context, _ *Cluster, c *contender.Contender) error {
	i.calls = append(i.calls, "uninstall "+c.ID)
	return i.stays
}

func TestInstallers(t *testing.T) {
	i := &installer{}
	a := newBed(t, Options{Install: i}, testNode("a"), testNode("b")).arena(t)
	for _, id := range []string{"flannel-vxlan", HostID} {
		n, err := a.Up(t.Context(), &contender.Contender{ID: id}, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Effort(t.Context()); err != nil { // not of the baseline
			t.Error(err)
		}
		if err := n.Down(t.Context()); err != nil {
			t.Error(err)
		}
	}
	i.err = errors.New("no chart")
	if _, err := a.Up(t.Context(), &contender.Contender{ID: "cilium"}, ""); err == nil || !strings.Contains(err.Error(), "install cilium: no chart") {
		t.Error(err)
	}
	want := []string{"install flannel-vxlan", "effort", "uninstall flannel-vxlan", "install cilium", "uninstall cilium"}
	if diff := cmp.Diff(want, i.calls); diff != "" {
		t.Error(diff)
	}
}

// Contenders stand beside each other; in a self-test their pods may change their own
// network, and the nodes' pods get no such right.
func TestBeside(t *testing.T) {
	a := newBed(t, Options{NetAdmin: true}, testNode("worker-a"), testNode("worker-b")).arena(t)
	if a.MaxUp() < 6 {
		t.Errorf("%d contenders stand together, want all of a self-test's", a.MaxUp())
	}
	var nets []arena.Network
	for range 2 {
		net, err := a.Up(t.Context(), a.ThisCluster(), "")
		if err != nil {
			t.Fatal(err)
		}
		nets = append(nets, net)
	}
	pods, err := a.cl.Client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 8 {
		t.Fatalf("%d pods, %v; want 2 networks × 2 nodes × (the node's and a pod)", len(pods.Items), err)
	}
	for _, p := range pods.Items {
		c := p.Spec.Containers[0].SecurityContext
		if may := c != nil && c.Capabilities != nil && slices.Contains(c.Capabilities.Add, "NET_ADMIN"); may == p.Spec.HostNetwork {
			t.Errorf("pod %s, host network %v: may change its network: %v", p.Name, p.Spec.HostNetwork, may)
		}
	}
	for _, net := range nets {
		if err := net.Down(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for name, o := range map[string]Options{"an installed network": {Install: &installer{}}, "namespaces of an administrator": {Within: []string{"mine"}}} {
		if n := (&Arena{opt: o}).MaxUp(); n != 1 {
			t.Errorf("%s: %d contenders stand together", name, n)
		}
	}
}
