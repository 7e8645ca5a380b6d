package install

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ktesting "k8s.io/client-go/testing"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/arena/kube/install/node"
	"github.com/cnibench/cnibench/internal/contender"
)

// What was in the cluster before stays, though the recipe names its kind.
func TestCleanObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := nodeOf("a", "10.0.0.1", "", map[string]string{"x.example/old": "", "x.example/new": "", "other": ""})
		n.Annotations = map[string]string{"x.example/old": "", "x.example/new": ""}
		n.Spec.Taints = []corev1.Taint{{Key: "x.example/old"}, {Key: "x.example/new"}, {Key: "other"}}
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionTrue})
		conditions := len(n.Status.Conditions)
		b := newBed([]runtime.Object{n},
			definition("old.x.example"), definition("new.x.example"),
			object("v1", "Namespace", "", "old"), object("v1", "Namespace", "", "new"))
		l := contender.Leftovers{CRDs: []string{"x.example"}, Namespaces: []string{"old", "new"}, NodeAnnotations: []string{"x.example/"}}
		j := newJob(t, b, l, &findings{Cluster: []string{
			"CustomResourceDefinition old.x.example", "Namespace old",
			"mark label x.example/old of node a", "mark annotation x.example/old of node a", "mark taint x.example/old of node a",
		}})
		if err := j.cleanObjects(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"customresourcedefinitions new.x.example", "namespaces new"}, b.deleted()); diff != "" {
			t.Error(diff)
		}
		got, err := b.client.CoreV1().Nodes().Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"annotation x.example/old", "label other", "label x.example/old", "taint other", "taint x.example/old"}
		marks := marksOf(got)
		slices.Sort(marks)
		if diff := cmp.Diff(want, marks); diff != "" {
			t.Error(diff)
		}
		if len(got.Status.Conditions) != conditions-1 {
			t.Errorf("conditions: %v", got.Status.Conditions)
		}
	})
}

// A definition of a manifest that was there before keeps its objects and
// their finalizers; one that the installer made goes with them.
func TestDeleteMade(t *testing.T) {
	for _, tt := range []struct {
		name  string
		marks []string
		gone  []string
		holds int
	}{
		{"theirs", nil, nil, 1},
		{"ours", []string{"product"}, []string{"customresourcedefinitions widgets.x.example"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := object("x.example/v1", "Widget", "default", "w")
				w.SetFinalizers([]string{"x.example/hold"})
				b := newBed(nil, definition("widgets.x.example", tt.marks...), w)
				j := newJob(t, b, contender.Leftovers{}, nil)
				if err := j.deleteMade(t.Context(), definition("widgets.x.example")); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.gone, b.deleted()); diff != "" {
					t.Error(diff)
				}
				gvr := schema.GroupVersionResource{Group: "x.example", Version: "v1", Resource: "widgets"}
				got, err := b.dynamic.Resource(gvr).Namespace("default").Get(t.Context(), "w", metav1.GetOptions{})
				if err != nil || len(got.GetFinalizers()) != tt.holds {
					t.Errorf("finalizers %v, %v", got, err)
				}
			})
		})
	}
}

func TestLabelNodes(t *testing.T) {
	b := newBed([]runtime.Object{nodeOf("a", "10.0.0.1", "", map[string]string{"old": "x"})})
	j := newJob(t, b, contender.Leftovers{}, &findings{Cluster: []string{"mark label old of node a"}})
	for _, tt := range []struct {
		away bool
		want map[string]string
	}{
		{false, map[string]string{"old": "x", "new": "y"}},
		{true, map[string]string{"old": "x"}},
	} {
		err := labelsStep{&contender.NodeLabels{Nodes: "all", Labels: map[string]string{"old": "x", "new": "y"}}}.do(t.Context(), j)
		if tt.away {
			err = (&labelsRecord{Nodes: "all", Keys: []string{"new", "old"}}).undo(t.Context(), j)
		}
		if err != nil {
			t.Fatal(err)
		}
		n, err := b.client.CoreV1().Nodes().Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, n.Labels); diff != "" {
			t.Errorf("away %v: %s", tt.away, diff)
		}
	}
}

func TestFits(t *testing.T) {
	plugins := func(c *contender.Contender) { c.Kube.CNIPlugins = []string{"bridge"} }
	xfrm := func(c *contender.Contender) { c.Kube.Leftovers.XFRM = true }
	for _, tt := range []struct {
		name   string
		change func(*contender.Contender)
		has    node.Answer
		want   string
	}{
		{"bare", xfrm, node.Answer{State: node.State{"file": {"/etc/cni/net.d/99-loopback.conf"}}}, ""},
		{"a pod network", xfrm, node.Answer{State: node.State{"file": {"/etc/cni/net.d/10-x.conflist"}}}, "node a has a pod network already"},
		{"no plugin", plugins, node.Answer{}, "which node a lacks"},
		{"another's IPsec", xfrm, node.Answer{State: node.State{"ipsec policy": {"p"}}}, "node a has some already"},
		{"another's Open vSwitch", func(c *contender.Contender) { c.Kube.Leftovers.OVS = true }, node.Answer{State: node.State{"interface": {"lo", "ovs-system"}}}, "node a has one of its own"},
		{"another's IPsec, left alone", func(*contender.Contender) {}, node.Answer{State: node.State{"ipsec state": {"s"}}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := newJob(t, newBed(nil), contender.Leftovers{}, nil)
			tt.change(j.c)
			err := j.checkNodes(&findings{Nodes: map[string]*node.Answer{"a": &tt.has}})
			wantError(t, err, tt.want)
			if err != nil && arena.AsUnsupported(err) == nil {
				t.Errorf("%v is no refusal", err)
			}
		})
	}
}

// Nodes are cleaned though the pods' network is not known.
func TestCleanNodesUnknownNetwork(t *testing.T) {
	b := newBed([]runtime.Object{nodeOf("a", "10.0.0.1", "", nil)})
	var asked string
	j := newJob(t, b, contender.Leftovers{PodRoutes: true, Tables: []string{"x"}}, nil)
	j.open = func(context.Context, *kube.Cluster, string, bool) (worker, error) {
		return fakeWorker{answer: func(request string) string { asked = request; return "{}" }}, nil
	}
	wantError(t, j.cleanNodes(t.Context(), nil), "give it with --fact pod-cidr=…")
	if !strings.Contains(asked, `"do":"clean"`) || !strings.Contains(asked, `"tables":["x"]`) || strings.Contains(asked, "pod-routes") {
		t.Errorf("the node was asked %s", asked)
	}
}

// Pods that have ended keep their logs; those of the host network stay.
func TestEmptyNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := func(p *corev1.Pod) { p.Spec.NodeName = "a" }
		with := func(phase corev1.PodPhase) func(*corev1.Pod) {
			return func(p *corev1.Pod) { p.Status.Phase = phase }
		}
		b := newBed([]runtime.Object{
			pod("default", "runs", on), pod("default", "waits"), pod("default", "ended", on, with(corev1.PodSucceeded)),
			pod("default", "failed", on, with(corev1.PodFailed)), pod("kube-system", "host", on, func(p *corev1.Pod) { p.Spec.HostNetwork = true }),
		})
		if err := newJob(t, b, contender.Leftovers{}, nil).emptyNodes(t.Context()); err != nil {
			t.Fatal(err)
		}
		list, err := b.client.CoreV1().Pods(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range list.Items {
			names = append(names, p.Name)
		}
		slices.Sort(names)
		if diff := cmp.Diff([]string{"ended", "failed", "host", "waits"}, names); diff != "" {
			t.Error(diff)
		}
	})
}

// Pods of DaemonSets that were there before the product are detached, too: their sets are
// paused until the product is gone. The product's own stay with it.
func TestPauseDaemonSets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := func(ns, name string) *appsv1.DaemonSet {
			return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		}
		of := func(ns, name string, change ...func(*corev1.Pod)) *corev1.Pod {
			return pod(ns, name+"-x", append(change, func(p *corev1.Pod) {
				yes := true
				p.Spec.NodeName, p.OwnerReferences = "a", []metav1.OwnerReference{{Kind: "DaemonSet", Name: name, Controller: &yes}}
			})...)
		}
		b := newBed([]runtime.Object{
			set("logs", "shipper"), of("logs", "shipper"), set("product", "csi"), of("product", "csi"),
			set("kube-system", "proxy"), of("kube-system", "proxy", func(p *corev1.Pod) { p.Spec.HostNetwork = true }),
		})
		// The controller of DaemonSets.
		selector := map[string]map[string]string{}
		b.client.PrependReactor("patch", "daemonsets", func(a ktesting.Action) (bool, runtime.Object, error) {
			patch := a.(ktesting.PatchAction)
			var o struct {
				Spec struct {
					Template struct {
						Spec struct{ NodeSelector map[string]string }
					}
				}
			}
			if err := json.Unmarshal(patch.GetPatch(), &o); err != nil {
				return true, nil, err
			}
			selector[patch.GetName()] = o.Spec.Template.Spec.NodeSelector
			if o.Spec.Template.Spec.NodeSelector[paused] != "" {
				err := b.client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), patch.GetNamespace(), patch.GetName()+"-x")
				return false, nil, err
			}
			return false, nil, nil
		})
		j := newJob(t, b, contender.Leftovers{}, &findings{Cluster: []string{"DaemonSet kube-system/proxy", "DaemonSet logs/shipper"}})
		if err := j.emptyNodes(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]map[string]string{"shipper": {paused: "true"}}, selector); diff != "" {
			t.Error(diff)
		}
		if err := j.resumeDaemonSets(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, at := range [][2]string{{"logs", "shipper"}, {"product", "csi"}, {"kube-system", "proxy"}} {
			ds, err := b.client.AppsV1().DaemonSets(at[0]).Get(t.Context(), at[1], metav1.GetOptions{})
			if err != nil || len(ds.Spec.Template.Spec.NodeSelector) > 0 {
				t.Errorf("%s: %v, %v", at[1], ds.Spec.Template.Spec.NodeSelector, err)
			}
		}
	})
}
