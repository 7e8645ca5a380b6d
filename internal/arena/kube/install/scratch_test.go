package install

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/kube"
)

func namespace(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func pod(ns, name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	for _, f := range change {
		f(p)
	}
	return p
}

func TestScratch(t *testing.T) {
	marked := map[string]string{ScratchLabel: "true"}
	owned := func(p *corev1.Pod) {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "r", Controller: &yes}}
	}
	ended := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	host := func(p *corev1.Pod) { p.Spec.HostNetwork = true }
	for _, tt := range []struct {
		name    string
		flag    bool
		objects []runtime.Object
		want    string
	}{
		{"not marked", false, []runtime.Object{namespace("kube-system", nil)}, "the cluster is not marked as scratch"},
		{"marked by flag", true, []runtime.Object{namespace("kube-system", nil)}, ""},
		{"marked by label", false, []runtime.Object{namespace("kube-system", marked)}, ""},
		{"system's pods", true, []runtime.Object{namespace("kube-system", nil), pod("kube-system", "dns", owned)}, ""},
		{"system's pod of the host", true, []runtime.Object{namespace("kube-system", nil), pod("kube-system", "etcd", host)}, ""},
		{"system's pod that would not come back", true, []runtime.Object{namespace("kube-system", nil), pod("kube-system", "dns")}, "foreign workloads run on the cluster: kube-system/dns"},
		{"the cluster's mark is none of its pods", false, []runtime.Object{namespace("kube-system", marked), pod("kube-system", "dns")}, "foreign workloads run on the cluster: kube-system/dns"},
		{"pod that may go", true, []runtime.Object{namespace("kube-x", marked), pod("kube-x", "p")}, ""},
		{"own pods", true, []runtime.Object{namespace("x", map[string]string{"app.kubernetes.io/managed-by": "cnibench"}), pod("x", "p")}, ""},
		{"foreign pod", true, []runtime.Object{namespace("shop", nil), pod("shop", "web", owned)}, "foreign workloads run on the cluster: shop/web"},
		{"foreign pod that has ended", true, []runtime.Object{namespace("shop", nil), pod("shop", "job", ended)}, ""},
		{"foreign pod that may go", true, []runtime.Object{namespace("shop", marked), pod("shop", "web", owned)}, ""},
		{"default, comes back", true, []runtime.Object{namespace("default", nil), pod("default", "web", owned)}, ""},
		{"default, would not come back", true, []runtime.Object{namespace("default", nil), pod("default", "web")}, "foreign workloads run on the cluster: default/web"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in, err := New(Options{Scratch: tt.flag})
			if err != nil {
				t.Fatal(err)
			}
			err = in.Check(context.Background(), &kube.Cluster{Client: fake.NewClientset(tt.objects...)})
			wantError(t, err, tt.want)
			if u := arena.AsUnsupported(err); err != nil && (u == nil || u.Remedy == "") {
				t.Errorf("%v is no refusal with a next step", err)
			}
		})
	}
}
