package install

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cnibench/cnibench/internal/arena/kube/install/node"
)

func TestParseObjects(t *testing.T) {
	const text = `# a comment alone
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}}
- {apiVersion: v1, kind: Namespace, metadata: {name: ns}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: d}
`
	objects, err := parseObjects([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range inOrder(objects) {
		got = append(got, textOf(o))
	}
	want := []string{"Namespace ns", "CustomResourceDefinition d", "ConfigMap ns/a"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for in, want := range map[string]string{
		"kind: X\n": "without apiVersion, kind or name",
		"a: [\n":    "no YAML of Kubernetes objects",
	} {
		_, err := parseObjects([]byte(in))
		wantError(t, err, want)
	}
}

func FuzzParseObjects(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: List\nitems: [{}]\n"))
	f.Add([]byte("---\n---\n{}"))
	f.Fuzz(func(t *testing.T, in []byte) {
		objects, err := parseObjects(in)
		if err != nil {
			return
		}
		for _, o := range inOrder(objects) {
			_ = textOf(o)
		}
	})
}

func TestIs(t *testing.T) {
	read := func(text string) *unstructured.Unstructured {
		objects, err := parseObjects([]byte("apiVersion: v1\n" + text))
		if err != nil {
			t.Fatal(err)
		}
		return objects[0]
	}
	const set = "kind: DaemonSet\nmetadata: {name: x, generation: 2}\n"
	for _, tt := range []struct{ name, object, wanted, err string }{
		{"exists", set, "", ""},
		{"not seen", set + "status: {observedGeneration: 1}", "rollout", "has not seen its newest version yet"},
		{"no node", set + "status: {observedGeneration: 2}", "rollout", "0 of 0 pods are ready"},
		{"partly", set + "status: {observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberReady: 2}", "rollout", "2 of 3 pods are ready"},
		{"all", set + "status: {observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberReady: 3}", "rollout", ""},
		{"deployment", "kind: Deployment\nmetadata: {name: x}\nspec: {replicas: 1}\nstatus: {updatedReplicas: 1, readyReplicas: 1}", "rollout", ""},
		{"condition", "kind: X\nmetadata: {name: x}\nstatus: {conditions: [{type: Available, status: 'True'}]}", "Available", ""},
		{"not yet", "kind: X\nmetadata: {name: x}\nstatus: {conditions: [{type: Available, status: 'False', message: slow}]}", "Available", "Available is False: slow"},
		{"no condition", "kind: X\nmetadata: {name: x}\n", "Available", "has no condition Available yet"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantError(t, conditionMet(read(tt.object), tt.wanted), tt.err)
		})
	}
}

func TestWaiting(t *testing.T) {
	state := func(s corev1.ContainerState) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{Name: "c", State: s}}
	}
	for _, tt := range []struct {
		name string
		pod  corev1.PodStatus
		want string
	}{
		{"ready", corev1.PodStatus{Phase: corev1.PodRunning}, ""},
		{"ended well", corev1.PodStatus{Phase: corev1.PodSucceeded}, ""},
		{"no image", corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: state(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}})}, "c: ErrImagePull not found"},
		{"init failed", corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: state(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}})}, "c: ended with 1 Error"},
		{"not scheduled", corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "no node"}}}, "Pending Unschedulable no node"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := explainWait(&corev1.Pod{Status: tt.pod}); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestBeyondBefore(t *testing.T) {
	before := &findings{
		Nodes:   map[string]*node.Answer{"a": {State: node.State{"interface": {"eth0"}}}, "away": {}},
		Cluster: []string{"Namespace default"},
	}
	after := &findings{
		Nodes: map[string]*node.Answer{
			"a":   {State: node.State{"interface": {"cni0", "eth0"}}},
			"new": {State: node.State{"interface": {"eth0"}}},
		},
		Cluster: []string{"Namespace default", "Namespace kube-flannel"},
	}
	if diff := cmp.Diff([]string{"Namespace kube-flannel", "a: interface cni0"}, after.changes(before)); diff != "" {
		t.Error(diff)
	}
	if said := after.listUnverifiedNodes(before); len(said) != 2 || !strings.Contains(said[0], "node away is not there") || !strings.Contains(said[1], "node new has joined") {
		t.Errorf("said %q", said)
	}
}

func TestMarksOf(t *testing.T) {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{"kubernetes.io/os": "linux", "node.kubernetes.io/x": ""},
			Annotations: map[string]string{cordoned: "true"},
		},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "node.cilium.io/agent-not-ready"}, {Key: "node.kubernetes.io/not-ready"}}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionTrue},
		}},
	}
	if diff := cmp.Diff([]string{"label kubernetes.io/os", "taint node.cilium.io/agent-not-ready", noNetwork}, marksOf(n)); diff != "" {
		t.Error(diff)
	}
}

func TestGenerate(t *testing.T) {
	psk, err := generate("psk")
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := base64.StdEncoding.DecodeString(psk); err != nil || len(raw) != 36 {
		t.Errorf("psk of %d bytes, %v", len(raw), err)
	}
	key, err := generate("cilium-ipsec")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^3 rfc4106\(gcm\(aes\)\) [0-9a-f]{40} 128$`).MatchString(key) {
		t.Errorf("key %q", key)
	}
	if again, _ := generate("psk"); again == psk {
		t.Error("the same key twice")
	}
}

func TestListing(t *testing.T) {
	var things []string
	for n := range 14 {
		things = append(things, fmt.Sprint(n))
	}
	if got := joinList(things); !strings.HasSuffix(got, "10; 3 more") {
		t.Errorf("got %s", got)
	}
}
