package kube

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestProbes: nodes that are not ready, cordoned or without a running pod take no part; a pod
// stays the same endpoint, and one that is made anew is another.
func TestProbes(t *testing.T) {
	unready := func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	probe := func(name, node, uid string, host bool) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "net", Name: name, UID: types.UID(uid), Labels: map[string]string{"c": "probe"}},
			Spec:       corev1.PodSpec{NodeName: node, HostNetwork: host},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}}},
		}
	}
	starting := probe("d1", "d", "6", false)
	starting.Status = corev1.PodStatus{Phase: corev1.PodPending}
	other := probe("x", "a", "7", false)
	other.Labels = nil
	b := newBed(t, Options{Within: []string{"net"}},
		testNode("a"), testNode("b"), testNode("away", unready), testNode("drained", cordoned), testNode("d"),
		probe("a1", "a", "1", false), probe("a2", "a", "2", true), probe("b1", "b", "3", false), probe("away1", "away", "4", false), probe("drained1", "drained", "5", false), starting, other)
	p := b.probes(t.Context(), "c=probe")
	defer p.Close(t.Context())
	list := func() (names []string, nodes []PodNode) {
		nodes, err := p.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range nodes {
			names = append(names, n.RealName)
		}
		return names, nodes
	}
	names, first := list()
	if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" {
		t.Fatal(diff)
	}
	if first[0].Host == nil || first[0].Pod == nil || first[1].Host != nil || first[1].Pod == nil {
		t.Errorf("%+v", first)
	}
	if _, second := list(); second[0].Pod != first[0].Pod {
		t.Error("a pod that is the same is another endpoint")
	}
	if err := b.client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "net", "b1"); err != nil {
		t.Fatal(err)
	}
	if names, _ := list(); !slices.Equal(names, []string{"a"}) {
		t.Errorf("b's pod is gone: %v", names)
	}
	if err := b.client.Tracker().Add(probe("b1", "b", "30", false)); err != nil {
		t.Fatal(err)
	}
	if _, third := list(); third[1].Pod == first[1].Pod {
		t.Error("a pod that was made anew is the old endpoint")
	}
	if err := p.Announce(t.Context(), "b", true, "PlaceSlow", "slow: what b sends"); err != nil {
		t.Fatal(err)
	}
	events, err := b.client.CoreV1().Events("net").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(events.Items) != 1 {
		t.Fatalf("%v, %v", events, err)
	}
	if e := events.Items[0]; e.InvolvedObject.Name != "b1" || e.Type != corev1.EventTypeWarning || e.Reason != "PlaceSlow" {
		t.Errorf("%+v", e)
	}
}
