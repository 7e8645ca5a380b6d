package kube

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/arena"
)

// loopbackPods gives pods the address that the fake's Services have, so that
// the echo answers there.
func loopbackPods(p *corev1.Pod) {
	p.Status.PodIPs = []corev1.PodIP{{IP: "127.0.0.1"}}
}

func TestService(t *testing.T) {
	for _, kind := range []string{ClusterIP, NodePort, Headless} {
		t.Run(kind, func(t *testing.T) {
			b := newBed(t, Options{Service: kind}, testNode("a"), testNode("b"))
			b.pod = loopbackPods
			n := up(t, b.arena(t), here).(*network)
			ports := []arena.Port{{Protocol: arena.TCP, Number: 5201}, {Protocol: arena.UDP, Number: 5201}, {Protocol: arena.TCP, Number: 5202, Server: n.pods[0]}}
			for _, others := range []int{3, 0} {
				p, took, err := n.Service(t.Context(), ports, others)
				if err != nil {
					t.Fatal(err)
				}
				if took <= 0 || p.Target.String() != "127.0.0.1" || p.Server.Name() != "node2-pod1" {
					t.Errorf("%+v in %v", p, took)
				}
				if (p.Ports != nil) != (kind == NodePort) {
					t.Errorf("ports %v", p.Ports)
				}
				made, err := b.client.CoreV1().Services(n.run).List(t.Context(), metav1.ListOptions{})
				if err != nil || len(made.Items) != others+1 {
					t.Errorf("%d Services, %v; want %d", len(made.Items), err, others+1)
				}
			}
			if err := n.Reset(t.Context()); err != nil {
				t.Error(err)
			}
			made, err := b.client.CoreV1().Services(n.run).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(made.Items) != 0 {
				t.Errorf("%d Services are left, %v", len(made.Items), err)
			}
		})
	}
}

const twoPolicies = `---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny, namespace: green}
spec: {podSelector: {}, policyTypes: [Ingress]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: some, namespace: blue}
spec:
  podSelector: {}
  ingress:
    - from:
        - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: green}}
  egress:
    - to:
        - namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [green, kube-system]}]}
`

func TestSandbox(t *testing.T) {
	b := newBed(t, Options{}, testNode("a"), testNode("b"))
	n := up(t, b.arena(t), here)
	s, err := n.Sandbox(t.Context(), []arena.SandboxNamespace{
		{Name: "green", Labels: map[string]string{"team": "green"}, Pods: []arena.SandboxPod{{Name: "server", Node: 1, Ports: []arena.NamedPort{{Name: "web", Protocol: arena.TCP, Number: 80}}}}},
		{Name: "blue", Pods: []arena.SandboxPod{{Name: "client", Labels: map[string]string{"app": "client"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Pod("green", "server")
	if err != nil || e.Name() != "green-server" || e.Node() != "node2" || !s.Addrs("green", "server")[0].IsValid() {
		t.Errorf("%v, %v, %v", e, s.Addrs("green", "server"), err)
	}
	if _, err := s.Pod("green", "client"); err == nil {
		t.Error("a pod that nobody asked for")
	}
	policies := func() map[string]string {
		t.Helper()
		list, err := b.client.NetworkingV1().NetworkPolicies("").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for _, p := range list.Items {
			key := p.Namespace[strings.LastIndex(p.Namespace, "-")+1:] + "/" + p.Name
			for _, r := range p.Spec.Ingress {
				found[key] += r.From[0].NamespaceSelector.MatchLabels[corev1.LabelMetadataName]
			}
			for _, r := range p.Spec.Egress {
				found[key] += " " + strings.Join(r.To[0].NamespaceSelector.MatchExpressions[0].Values, " ")
			}
			if found[key] == "" {
				found[key] = "nothing"
			}
		}
		return found
	}
	green := s.(*sandbox).realNames["green"]
	for range 2 { // made, then replaced
		if err := s.Apply(t.Context(), []byte(twoPolicies)); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"green/deny": "nothing", "blue/some": green + " " + green + " kube-system"}
		if diff := cmp.Diff(want, policies()); diff != "" {
			t.Error(diff)
		}
	}
	if err := s.Delete(t.Context()); err != nil || len(policies()) != 0 {
		t.Errorf("%v, left: %v", err, policies())
	}
	for name, text := range map[string]string{
		"unknown namespace": strings.ReplaceAll(twoPolicies, "namespace: blue", "namespace: red"),
		"unknown key":       strings.ReplaceAll(twoPolicies, "policyTypes", "policyKinds"),
		"another kind":      "apiVersion: v1\nkind: Secret\nmetadata: {name: x, namespace: green}\n",
	} {
		if err := s.Apply(t.Context(), []byte(text)); err == nil || len(policies()) != 0 {
			t.Errorf("%s: %v, applied: %v", name, err, policies())
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if left := b.left(t); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}
