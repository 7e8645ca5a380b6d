package kube

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/testutil/arenatest"
	"github.com/cnibench/cnibench/internal/testutil/kubetest"
)

// The tests named TestKube want a cluster: make test-kube brings one up.

// realCluster is the options for a cluster that is there.
func realCluster(t *testing.T) Options {
	t.Helper()
	c := kubetest.GetCluster(t)
	return Options{Kubeconfig: c.Kubeconfig, Image: c.Image, PullPolicy: "IfNotPresent", Log: t.Logf}
}

// settles makes the test end when the test bed's nodes can all be used again:
// one that was cut off is not ready for some seconds more.
func settles(t *testing.T) {
	t.Helper()
	o := realCluster(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		cl, err := Connect(ctx, o)
		if err != nil {
			t.Error(err)
			return
		}
		// What is read first may be from before.
		why := ""
		for well := 0; well < 10 && ctx.Err() == nil; time.Sleep(time.Second) {
			list, err := cl.listNodes(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			well++
			why = ""
			for i := range list {
				if use, not := judgeNode(&list[i], nil); use == nil || !use.ready {
					well, why = 0, list[i].Name+" cannot be used: "+not
				}
			}
		}
		if why != "" {
			t.Error(why)
		}
	})
}

func realArena(t *testing.T, o Options) *Arena {
	t.Helper()
	a, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestKubeConformance(t *testing.T) {
	a := realArena(t, realCluster(t))
	net, err := a.Up(t.Context(), a.ThisCluster(), "")
	if err != nil {
		t.Fatal(err)
	}
	underlay := net.(*network).uplinkMTU
	// What the pod network takes is its own affair here; that packets of the
	// pods' MTU cross is what the suite checks.
	pod, err := startAgent(t.Context(), net.(*network).pods[0])
	if err != nil {
		t.Fatal(err)
	}
	hello, err := pod.Hello(t.Context(), net.Pods()[0].Addr())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(pod.Close(), net.Down(t.Context())); err != nil {
		t.Fatal(err)
	}
	for key, value := range a.Environment() {
		t.Logf("%s: %s", key, value)
	}
	this := *a.ThisCluster()
	if known := int(this.Datapath.Overhead); known > 0 && underlay-known != hello.MTU {
		t.Errorf("%s takes %d bytes, but pods have %d of %d", this.Product, known, hello.MTU, underlay)
	}
	ran := arenatest.Run(t, a, []*contender.Contender{{ID: HostID}, &this}, arenatest.Config{Exe: Program, UnderlayMTU: underlay, Nodes: 2})
	if !slices.Contains(ran, ThisClusterID) || !slices.Contains(ran, HostID) {
		t.Errorf("only %v ran", ran)
	}
}

func TestKubeImageThatIsNotThere(t *testing.T) {
	o := realCluster(t)
	o.Image, o.PullPolicy = "localhost/no-such-cnibench:1", "Never"
	a := realArena(t, o)
	begin := time.Now()
	_, err := a.Up(t.Context(), a.ThisCluster(), "")
	if text := unsupported(t, err); !strings.Contains(text, "ErrImageNeverPull") {
		t.Error(text)
	}
	t.Logf("found in %v", time.Since(begin).Round(time.Second))
}

func TestKubeOneNode(t *testing.T) {
	o := realCluster(t)
	o.Nodes = []string{realArena(t, o).list[1].realName}
	a := realArena(t, o)
	_ = unsupported(t, a.HasPath(a.ThisCluster(), arena.PathPod))
	n := up(t, a, a.ThisCluster())
	same, err := n.Pair(t.Context(), arena.PathSameNode)
	if err != nil || same.Client.Node() != same.Server.Node() {
		t.Errorf("%+v, %v", same, err)
	}
	if _, _, err := n.Service(t.Context(), []arena.Port{{Protocol: arena.TCP, Number: 5201}}, 3); err != nil {
		t.Error(err)
	}
}

func TestKubeServiceKinds(t *testing.T) {
	for _, kind := range []string{NodePort, Headless} {
		t.Run(kind, func(t *testing.T) {
			o := realCluster(t)
			o.Service = kind
			a := realArena(t, o)
			n := up(t, a, a.ThisCluster()).(*network)
			server, err := startAgent(t.Context(), n.server())
			if err != nil {
				t.Fatal(err)
			}
			defer closeAgent(server)
			port, err := server.Echo(t.Context(), n.server().Addr())
			if err != nil {
				t.Fatal(err)
			}
			p, took, err := n.Service(t.Context(), []arena.Port{{Protocol: arena.TCP, Number: port}, {Protocol: arena.UDP, Number: port}}, 5)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s for port %d, in %v", p.At(port), port, took)
			client, err := startAgent(t.Context(), n.pods[0])
			if err != nil {
				t.Fatal(err)
			}
			defer closeAgent(client)
			var reached error // Reach asks once, and a datagram may be lost
			for range 3 {
				if reached = client.Reach(t.Context(), p.Target, p.At(port).Port()); reached == nil {
					return
				}
			}
			t.Error(reached)
		})
	}
}

// A policy of the cluster's own refuses the host network: the pods are
// measured all the same.
func TestKubeHostNetworkRefused(t *testing.T) {
	o := realCluster(t)
	a := realArena(t, o)
	api := allGroups(t, a.cl).AdmissionregistrationV1()
	const name = "cnibench-test-no-host-network"
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}}}},
			Validations: []admissionv1.Validation{{Expression: "!has(object.spec.hostNetwork) || !object.spec.hostNetwork", Message: "host namespaces are not for you"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{labelManaged: managedBy}}},
		},
	}
	t.Cleanup(func() {
		ctx := context.Background()
		_ = api.ValidatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{})
		_ = api.ValidatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{})
	})
	if _, err := api.ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var refused error
	for end := time.Now().Add(time.Minute); refused == nil && time.Now().Before(end); { // until the API server knows it
		refused = realArena(t, o).Supports(t.Context(), &contender.Contender{ID: HostID})
	}
	if text := unsupported(t, refused); !strings.Contains(text, "host namespaces are not for you") {
		t.Error(text)
	}
	n := up(t, a, a.ThisCluster())
	if got := codes(n.Notes()); !slices.Contains(got, "no_host_network") {
		t.Errorf("notes: %v", got)
	}
	if p, err := n.Pair(t.Context(), arena.PathPod); err != nil {
		t.Errorf("%+v, %v", p, err)
	}
	t.Logf("uplink %s", n.Uplink())
}

// The API server goes away for half a minute: commands end with their streams,
// and new ones start as soon as it is back.
func TestKubeAPIAway(t *testing.T) {
	bed := kubetest.GetBed(t)
	settles(t)
	a := realArena(t, realCluster(t))
	n := up(t, a, a.ThisCluster())
	e := n.Pods()[0]
	sleeper, err := e.Start(t.Context(), host.Command{Argv: []string{"sleep", "987654"}})
	if err != nil {
		t.Fatal(err)
	}
	paused := make(chan struct{})
	go func() {
		defer close(paused)
		bed.Do(t, "pause-api", "15s", "--kill")
	}()
	defer func() { <-paused }()
	if err := sleeper.Wait(); !errors.Is(err, agent.ErrStream) {
		t.Errorf("the command ended with %v", err)
	}
	if err := n.(*network).Fault(); err != nil {
		t.Errorf("the pods are well, and the fault is %v", err)
	}
	var out bytes.Buffer
	p, err := e.Start(t.Context(), host.Command{Argv: []string{"sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"}, Stdout: &out})
	if err == nil {
		err = p.Wait()
	}
	if err != nil {
		t.Fatalf("after the API server came back: %v", err)
	}
	if strings.Contains(out.String(), "987654") {
		t.Errorf("the command outlived its stream: %s", out.String())
	}
}

// A node dies: the network says so, and goes down all the same.
func TestKubeNodeDies(t *testing.T) {
	bed := kubetest.GetBed(t)
	settles(t)
	a := realArena(t, realCluster(t))
	n, err := a.Up(t.Context(), a.ThisCluster(), "")
	if err != nil {
		t.Fatal(err)
	}
	victim := a.list[1].realName
	bed.Do(t, "stop-node", victim)
	t.Cleanup(func() { bed.Do(t, "start-node", victim) })
	var fault error
	for end := time.Now().Add(2 * time.Minute); fault == nil && time.Now().Before(end); time.Sleep(time.Second) {
		fault = n.(*network).Fault()
	}
	if fault == nil || !strings.Contains(fault.Error(), victim) {
		t.Errorf("fault: %v", fault)
	}
	begin := time.Now()
	if err := n.Down(t.Context()); err != nil {
		t.Errorf("down: %v", err)
	}
	t.Logf("%v; down in %v", fault, time.Since(begin).Round(time.Second))
}

// A pod is evicted: the step's fault names it.
func TestKubePodIsDeleted(t *testing.T) {
	a := realArena(t, realCluster(t))
	n := up(t, a, a.ThisCluster()).(*network)
	e := n.pods[0]
	sleeper, err := e.Start(t.Context(), host.Command{Argv: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.cl.Client.CoreV1().Pods(n.run).Delete(t.Context(), e.pod, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := sleeper.Wait(); err == nil {
		t.Error("the command ended well")
	}
	if err := n.Fault(); err == nil || !strings.Contains(err.Error(), e.pod) {
		t.Errorf("fault: %v", err)
	}
	if _, err := e.Start(t.Context(), host.Command{Argv: []string{"true"}}); err == nil {
		t.Error("a command started in a pod that is gone")
	}
}

// Pods of a run that is killed end by themselves, those in the host network too.
func TestKubePodsEndWithTheirRun(t *testing.T) {
	a := realArena(t, realCluster(t))
	n := up(t, a, a.ThisCluster()).(*network)
	sign := func() string {
		out, err := host.Output(t.Context(), n.pods[0], host.Command{Argv: []string{"cat", agent.Sign}, OffMeasuredCPUs: true})
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	before := sign()
	time.Sleep(2 * renewEvery)
	if sign() == before {
		t.Error("the pod hears of no renewal")
	}
	n.lease.stop()
	for end := time.Now().Add(4 * time.Minute); ; time.Sleep(time.Second) {
		pods, err := a.cl.pods(t.Context(), n.namespace)
		if err != nil {
			t.Fatal(err)
		}
		running := 0
		for i := range pods {
			if up, _ := podRuns(&pods[i]); up {
				running++
			}
		}
		if running == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d pods still run", running, len(pods))
		}
	}
	if err := n.Fault(); err == nil || !strings.Contains(err.Error(), "its lease was not renewed") {
		t.Errorf("fault: %v", err)
	}
}

func TestKubeClean(t *testing.T) {
	o := realCluster(t)
	a := realArena(t, o)
	n := up(t, a, a.ThisCluster()).(*network)
	if _, err := New(t.Context(), o); !strings.Contains(unsupported(t, err), n.run) {
		t.Errorf("a second run: %v", err)
	}
	did, err := Clean(t.Context(), o, false)
	if err != nil || len(did.Removed) > 0 || !slices.Equal(did.Spared, []string{n.run}) {
		t.Errorf("a run under way: %+v, %v", did, err)
	}
	n.lease.stop() // as if it were killed
	did, err = Clean(t.Context(), o, false)
	if err != nil || !slices.Contains(did.Removed, n.run) {
		t.Errorf("a killed run: %+v, %v", did, err)
	}
}
