package kube

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/cnibench/cnibench/internal/diagnose"
)

// workloadPod returns a pod as users have it.
func workloadPod(name, node string, change ...func(p *corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "app"}}},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func policyFor(name string, labels map[string]string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: labels}}}
}

// The pods of the user choose the nodes, and are described from their objects.
func TestWorkloads(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	cart := workloadPod("cart", "c", func(p *corev1.Pod) {
		p.Annotations = map[string]string{egressBandwidth: "10M"}
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m")}
		p.Spec.InitContainers = []corev1.Container{{Name: "istio-proxy", RestartPolicy: &always}, {Name: "once"}}
	})
	db := workloadPod("db", "b", func(p *corev1.Pod) { p.Spec.HostNetwork = true })
	bed := newBed(t, Options{Pod: "shop/cart", To: "shop/db"}, testNode("a"), testNode("b"), testNode("c"), cart, db,
		policyFor("z-all", nil), policyFor("cart-only", map[string]string{"app": "cart"}), policyFor("other", map[string]string{"app": "x"}))
	a, err := newArena(t.Context(), bed.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	var nodes []string
	for _, n := range a.list {
		nodes = append(nodes, n.realName)
	}
	if diff := cmp.Diff([]string{"c", "b"}, nodes); diff != "" {
		t.Errorf("nodes: %s", diff)
	}
	got, unseen, err := a.Workloads(t.Context())
	if err != nil || len(unseen) > 0 {
		t.Fatal(err, unseen)
	}
	want := []diagnose.Snapshot{
		{Endpoint: "shop/cart", Node: "c", Pod: true, Yours: true, CPULimit: 0.2, Egress: 10e6, Containers: []string{"istio-proxy", "app"}, Policies: []string{"cart-only", "z-all"}},
		{Endpoint: "shop/db", Node: "b", Pod: true, Yours: true, HostNetwork: true, Containers: []string{"app"}, Policies: []string{"z-all"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWorkloadsWrong(t *testing.T) {
	for value, want := range map[string]string{"cart": "want NAMESPACE/NAME", "shop/none": "no such pod"} {
		bed := newBed(t, Options{Pod: "shop/cart", To: value}, testNode("a"), testNode("b"), workloadPod("cart", "a"))
		_, err := newArena(t.Context(), bed.Cluster)
		if wrong := (*UsageError)(nil); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "--to "+value) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// cadvisorText is what a kubelet of 1.34 writes, shortened.
const cadvisorText = `# HELP container_cpu_cfs_throttled_periods_total Number of throttled period intervals.
# TYPE container_cpu_cfs_throttled_periods_total counter
container_cpu_cfs_throttled_periods_total{container="",id="/pods/pod1",image="",name="",namespace="shop",pod="cart"} 70 1764237600123
container_cpu_cfs_throttled_periods_total{container="app",id="/pods/pod1/x",image="i",name="x",namespace="shop",pod="cart"} 41 1764237600123
container_cpu_cfs_throttled_periods_total{container="proxy",id="/pods/pod1/y",image="i",name="y",namespace="shop",pod="cart"} 1 1764237600500
container_cpu_cfs_throttled_periods_total{container="app",id="/pods/pod2/x",image="i",name="x",namespace="shop",pod="cart2"} 9 1764237600123
container_cpu_cfs_periods_total{container="app",id="/pods/pod1/x",image="i",name="x",namespace="shop",pod="cart"} 60 1764237600123
container_network_transmit_bytes_total{container="",id="/pods/pod1",image="",interface="eth0",name="",namespace="shop",pod="cart"} 1.5e+06 1764237599000
container_network_transmit_bytes_total{container="",id="/pods/pod1",image="",interface="eth0",name="",namespace="web",pod="cart"} 7 1764237599000
`

func TestCounters(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/nodes/node-1/proxy/metrics/cadvisor" {
			http.Error(w, `{"kind":"Status","status":"Failure","reason":"Forbidden","message":"nodes \"node-2\" is forbidden","code":403}`, http.StatusForbidden)
			return
		}
		_, _ = w.Write([]byte(cadvisorText))
	}))
	defer server.Close()
	client, err := newClient(&rest.Config{Host: server.URL, QPS: 100, Burst: 100})
	if err != nil {
		t.Fatal(err)
	}
	cl := &Cluster{Client: client}
	got, err := cl.Counters(t.Context(), "node-1", "shop/cart")
	if err != nil {
		t.Fatal(err)
	}
	want := PodCounters{At: 1764237600.5, Values: map[string]float64{
		"container_cpu_cfs_throttled_periods": 42, "container_cpu_cfs_periods": 60, "container_network_transmit_bytes": 1.5e6}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := cl.Counters(t.Context(), "node-2", "shop/cart"); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("a kubelet that may not be asked: %v", err)
	}
}

func FuzzParseCAdvisor(f *testing.F) {
	f.Add(cadvisorText)
	f.Add("container_cpu_cfs_periods_total{} NaN x")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCAdvisor(strings.NewReader(text), "shop", "cart")
		if err != nil {
			return
		}
		for name, v := range c.Values {
			if !(v >= 0) {
				t.Errorf("%s grew by %v", name, v)
			}
		}
	})
}
