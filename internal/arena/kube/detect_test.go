package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cnibench/cnibench/internal/contender"
)

func TestRecognise(t *testing.T) {
	set := func(namespace, name, image string) runtime.Object {
		d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Image: image}}
		return d
	}
	config := func(namespace, name string, data map[string]string) runtime.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
	}
	proxy := set("kube-system", "kube-proxy", "registry.k8s.io/kube-proxy:v1.34.4")
	type found struct {
		Product, Version string
		Datapath         contender.Datapath
	}
	const source = "the configuration of the cluster"
	for name, c := range map[string]struct {
		objects []runtime.Object
		want    found
	}{
		"nothing": {[]runtime.Object{proxy}, found{Product: "unknown"}},
		"Cilium": {
			[]runtime.Object{proxy, set("kube-system", "cilium", "quay.io/cilium/cilium:v1.15.2@sha256:0123"), config("kube-system", "cilium-config", map[string]string{"routing-mode": "tunnel", "tunnel-protocol": "geneve", "kube-proxy-replacement": "true"})},
			found{"Cilium", "1.15.2", contender.Datapath{Attach: "veth+ebpf", Transport: "geneve", Services: "ebpf", Encapsulation: "geneve", Overhead: 50, Source: source}},
		},
		"Cilium before 1.14": {
			[]runtime.Object{set("kube-system", "cilium", "localhost:5000/cilium"), config("kube-system", "cilium-config", map[string]string{"tunnel": "disabled"})},
			found{"Cilium", "", contender.Datapath{Attach: "veth+ebpf", Transport: "routes", Services: "kube-proxy+ebpf"}},
		},
		"flannel": {
			[]runtime.Object{set("kube-flannel", "kube-flannel-ds", "ghcr.io/flannel-io/flannel:v0.28.4"), config("kube-flannel", "kube-flannel-cfg", map[string]string{"net-conf.json": `{"Network":"10.244.0.0/16","Backend":{"Type":"vxlan"}}`})},
			found{"Flannel", "0.28.4", contender.Datapath{Attach: "bridge", Transport: "vxlan", Encapsulation: "vxlan", Overhead: 50, Source: source}},
		},
		"flannel in K3s": {
			[]runtime.Object{testNode("a", func(n *corev1.Node) { n.Annotations = map[string]string{flannelBackend: "host-gw"} })},
			found{Product: "Flannel", Datapath: contender.Datapath{Transport: "routes"}},
		},
		"canal is more than Calico": {
			[]runtime.Object{set("kube-system", "calico-node", "calico/node:v3.27.2"), set("kube-system", "canal", "calico/node:v3.27.2")},
			found{Product: "Canal", Version: "3.27.2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := newBed(t, Options{}, c.objects...).recognise(t.Context())
			if got.ID != ThisClusterID {
				t.Errorf("id %s", got.ID)
			}
			if diff := cmp.Diff(c.want, found{got.Product, got.Version, got.Datapath}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What the ConfigMaps of a cluster say decides words in a report, and nothing else.
func FuzzDetect(f *testing.F) {
	f.Add("net-conf.json", `{"Backend":{"Type":"vxlan"}}`, "tunnel-protocol", "geneve")
	f.Add("tunnel", "disabled", "routing-mode", "native")
	f.Fuzz(func(_ *testing.T, key, value, other, more string) {
		data := map[string]string{key: value, other: more}
		readFlannel(data, &contender.Datapath{})
		readCilium(data, &contender.Datapath{}) // must not panic
	})
}
