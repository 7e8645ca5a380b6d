package kube

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ktesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
)

// fenced is a bed whose API server refuses every request outside the namespaces
// but the list of nodes, as under the Role that rbac prints. It returns what was
// refused.
func fenced(t *testing.T, o Options, objects ...runtime.Object) (*bed, *[]string) {
	t.Helper()
	for i, ns := range o.Within {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns, Labels: withinLabels[i]}})
	}
	b := newBed(t, o, objects...)
	var refused []string
	b.client.PrependReactor("*", "*", func(a ktesting.Action) (bool, runtime.Object, error) {
		what := a.GetVerb() + " " + a.GetResource().Resource
		get, named := a.(ktesting.GetAction)
		switch {
		case slices.Contains([]string{"list nodes", "create selfsubjectaccessreviews", "get version"}, what):
		case what == "get namespaces" && named && slices.Contains(o.Within, get.GetName()):
		case !slices.Contains(o.Within, a.GetNamespace()):
			refused = append(refused, what+" in "+a.GetNamespace())
			return true, nil, forbidden(what)
		}
		return false, nil, nil
	})
	return b, &refused
}

// With Within a run, its Services and a check of policies ask for nothing outside
// those namespaces but the list of nodes, and leave nothing in them.
func TestWithin(t *testing.T) {
	b, refused := fenced(t, Options{Within: []string{"measure", "measure-far"}, Service: Headless}, testNode("a"), testNode("b"))
	a := b.arena(t)
	for _, c := range []*contender.Contender{a.ThisCluster(), {ID: HostID}} {
		if err := a.Supports(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		n := up(t, a, c)
		if c.ID == ThisClusterID {
			if _, _, err := n.Service(t.Context(), []arena.Port{{Protocol: arena.TCP, Number: 5201}}, 2); err != nil {
				t.Error(err)
			}
			s, err := n.Sandbox(t.Context(), []arena.SandboxNamespace{
				{Name: "near", Labels: withinLabels[0], Pods: []arena.SandboxPod{{Name: "p"}}}, {Name: "far", Labels: withinLabels[1], Pods: []arena.SandboxPod{{Name: "p", Node: 1}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			policy := "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: none, namespace: far}\nspec: {podSelector: {}}\n"
			if err := s.Apply(t.Context(), []byte(policy)); err != nil {
				t.Error(err)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if got := b.within(t); !slices.Equal(got, []string{"measure/node1", "measure/node1-pod1", "measure/node2", "measure/node2-pod1", "measure/other-1", "measure/other-2", "measure/server"}) {
				t.Errorf("after the check: %v", got)
			}
		}
		if err := errors.Join(n.(*network).Fault(), n.Down(t.Context())); err != nil {
			t.Error(err)
		}
		if got := b.within(t); got != nil {
			t.Errorf("left behind: %v", got)
		}
	}
	if *refused != nil {
		t.Errorf("asked for: %v", *refused)
	}
}

// within are the pods, Services and policies of the bed.
func (b *bed) within(t *testing.T) []string {
	t.Helper()
	var names []string
	pods, err := b.client.Tracker().List(corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithKind("Pod"), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.(*corev1.PodList).Items {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	services, err := b.client.Tracker().List(corev1.SchemeGroupVersion.WithResource("services"), corev1.SchemeGroupVersion.WithKind("Service"), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range services.(*corev1.ServiceList).Items {
		names = append(names, s.Namespace+"/"+s.Name)
	}
	slices.Sort(names)
	return names
}

// What a killed run left is removed by its labels, and nothing of others.
func TestWithinClean(t *testing.T) {
	o := Options{Within: []string{"measure"}}
	b, refused := fenced(t, o, testNode("a"), testNode("b"), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "measure", Name: "theirs"}})
	up(t, b.arena(t), &contender.Contender{ID: ThisClusterID})
	_, err := newArena(t.Context(), b.Cluster)
	if text := unsupported(t, err); !strings.Contains(text, "cnibench clean --arena kube --all-runs --namespace measure") {
		t.Error(text)
	}
	did, err := leftovers{b.Cluster}.clean(t.Context(), true)
	if err != nil || len(did.Removed) != 1 {
		t.Errorf("%+v, %v", did, err)
	}
	if got := b.within(t); !slices.Equal(got, []string{"measure/theirs"}) {
		t.Errorf("left: %v", got)
	}
	if *refused != nil {
		t.Errorf("asked for: %v", *refused)
	}
}

// Refusals name what an administrator can do about them.
func TestWithinRefusals(t *testing.T) {
	o := Options{Within: []string{"measure"}}
	b, _ := fenced(t, o, testNode("a"), testNode("b"))
	refuseHost(b, -1, forbidden(podSecurity))
	a := b.arena(t)
	if text := unsupported(t, a.Supports(t.Context(), &contender.Contender{ID: HostID})); !strings.Contains(text, "refuses pods in the host network") {
		t.Error(text)
	}
	b, _ = fenced(t, o, testNode("a"), testNode("b"))
	a = b.arena(t)
	n := up(t, a, a.ThisCluster())
	_, err := n.Sandbox(t.Context(), []arena.SandboxNamespace{{Name: "near"}, {Name: "far"}})
	if text := unsupported(t, err); !strings.Contains(text, "cnibench rbac --namespace A,B") {
		t.Error(text)
	}
	_, err = n.Sandbox(t.Context(), []arena.SandboxNamespace{{Name: "near", Labels: map[string]string{"other": "label"}}})
	if text := unsupported(t, err); !strings.Contains(text, "lacks the label other=label") {
		t.Error(text)
	}
	b, _ = fenced(t, o, testNode("a"))
	b.denied = []string{"create pods in measure"}
	_, err = newArena(t.Context(), b.Cluster)
	if text := unsupported(t, err); !strings.Contains(text, "create pods in measure") {
		t.Error(text)
	}
	theirs := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "measure", Name: "node1"}}
	b, _ = fenced(t, o, testNode("a"), theirs)
	if _, err := b.arena(t).Up(t.Context(), &contender.Contender{ID: ThisClusterID}, ""); err == nil || !strings.Contains(err.Error(), "not of this run") {
		t.Error(err)
	}
	if got := b.within(t); !slices.Equal(got, []string{"measure/node1"}) {
		t.Errorf("left: %v", got)
	}
}

// Of the whole cluster, rbac gives no right but to list nodes.
func TestWithinRBAC(t *testing.T) {
	text, err := RBAC(Options{Within: []string{"measure", "measure-far"}})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, document := range bytes.Split(text, []byte("---\n")) {
		var head metav1.PartialObjectMetadata
		if err := yaml.Unmarshal(document, &head); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, head.Kind+" "+head.Namespace)
		if head.Kind == "ClusterRole" {
			var role rbacv1.ClusterRole
			if err := yaml.Unmarshal(document, &role); err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(role.Rules) != fmt.Sprint([]rbacv1.PolicyRule{rule("", []string{"nodes"}, []string{"list"})}) {
				t.Errorf("%v", role.Rules)
			}
		}
	}
	want := []string{
		"Namespace ", "Namespace ", "ServiceAccount measure", "ClusterRole ", "ClusterRoleBinding ", "Role measure", "RoleBinding measure", "Role measure-far", "RoleBinding measure-far",
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("%q", kinds)
	}
}
