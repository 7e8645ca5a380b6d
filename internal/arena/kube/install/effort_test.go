package install

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/result"
)

// Images of pods that came with a contender count once, those of pods that were there or
// are this program's do not; the size is the largest that a kubelet knows.
func TestEffort(t *testing.T) {
	pod := func(name, namespace string, labels map[string]string, images ...string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels, UID: types.UID(name)}}
		for _, image := range images {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Image: "example.org/" + image + ":1", ImageID: "example.org/" + image + "@sha256:00"})
		}
		return p
	}
	agent := pod("agent-1", "kube-system", nil, "agent", "sidecar")
	agent.Status.InitContainerStatuses = []corev1.ContainerStatus{{Image: "example.org/plugins:1", ImageID: "example.org/plugins@sha256:00"}}
	image := func(size int64, names ...string) corev1.ContainerImage {
		return corev1.ContainerImage{Names: names, SizeBytes: size}
	}
	node1 := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Status: corev1.NodeStatus{Images: []corev1.ContainerImage{
		image(100, "example.org/agent@sha256:00", "example.org/agent:1"), image(20, "example.org/sidecar:1"), image(7, "example.org/other:1"),
	}}}
	node2 := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-2"}, Status: corev1.NodeStatus{Images: []corev1.ContainerImage{
		image(110, "example.org/agent@sha256:00"), image(3, "example.org/plugins@sha256:00"),
	}}}
	b := newBed([]runtime.Object{
		node1, node2, agent,
		pod("agent-2", "kube-system", nil, "agent", "sidecar"),
		pod("dns", "kube-system", nil, "dns"),
		pod("worker", ownNamespace, nil, "cnibench"),
		pod("node1-pod1", "team", map[string]string{"app.kubernetes.io/managed-by": "cnibench"}, "cnibench"),
	})
	in := newInstaller(t, Options{})
	c := product(contender.Leftovers{})
	j, err := in.job(b.Cluster, c)
	if err != nil {
		t.Fatal(err)
	}
	in.installed, in.olderPods = c, map[types.UID]bool{"dns": true}
	j.steps = []*stepRecord{
		{Objects: []corev1.ObjectReference{{Kind: "Namespace"}, {Kind: "Secret"}}},
		{Chart: &chartRecord{Definitions: make([]corev1.ObjectReference, 2), Objects: make([]corev1.ObjectReference, 5), HookObjects: make([]corev1.ObjectReference, 1)}},
		{Labels: &labelsRecord{}},
	}
	if err := j.lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := in.Effort(t.Context(), b.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{result.InstallSteps: 0, result.InstallObjects: 10, result.InstallImages: 3, result.InstallImageSize: 133}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	if _, err := newInstaller(t, Options{}).Effort(t.Context(), b.Cluster); err == nil {
		t.Error("an installer counts what another has installed")
	}
}
