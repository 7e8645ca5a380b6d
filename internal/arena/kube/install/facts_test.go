package install

import (
	"context"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
)

func nodeOf(name, ip, cidr string, labels map[string]string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.NodeSpec{PodCIDR: cidr},
		Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}},
	}
}

func TestFacts(t *testing.T) {
	port := int32(6443)
	nodes := []runtime.Object{
		nodeOf("b", "10.0.0.2", "10.244.1.0/24", nil), nodeOf("a", "10.0.0.1", "10.244.0.0/24", nil),
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.9"}}},
		Ports:      []discoveryv1.EndpointPort{{Port: &port}},
	}
	kubeadm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kubeadm-config"},
		Data:       map[string]string{"ClusterConfiguration": "networking: {podSubnet: 'fd00::/48,10.1.0.0/16', serviceSubnet: 10.2.0.0/16}"},
	}
	flags := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kcm", Labels: map[string]string{"component": "kube-controller-manager"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Command: []string{"kube-controller-manager", "--cluster-cidr=10.3.0.0/16"}}}},
	}
	for _, tt := range []struct {
		name, fact string
		objects    []runtime.Object
		given      map[string]string
		want, err  string
	}{
		{"pods by the nodes' shares", "pod-cidr", nodes, nil, "10.244.0.0/16", ""},
		{"pods by kubeadm", "pod-cidr", append(nodes, kubeadm), nil, "10.1.0.0/16", ""},
		{"pods by a flag", "pod-cidr", append(nodes, flags), nil, "10.3.0.0/16", ""},
		{"pods as given", "pod-cidr", nodes, map[string]string{"pod-cidr": "10.9.0.0/16"}, "10.9.0.0/16", ""},
		{"pods unknown", "pod-cidr", []runtime.Object{nodeOf("a", "10.0.0.1", "", nil)}, nil, "", "give it with --fact pod-cidr=…"},
		{"services by kubeadm", "service-cidr", append(nodes, kubeadm), nil, "10.2.0.0/16", ""},
		{"services unknown", "service-cidr", nodes, nil, "", "give it with --fact service-cidr=…"},
		{"API server", "api-host", append(nodes, slice), nil, "10.0.0.9", ""},
		{"API server's port", "api-port", append(nodes, slice), nil, "6443", ""},
		{"control plane without the role", "control-plane-ips", nodes, nil, "10.0.0.1", ""},
		{"control plane", "control-plane-ips", append(nodes, nodeOf("c", "10.0.0.3", "", map[string]string{"node-role.kubernetes.io/control-plane": ""})), nil, "10.0.0.3", ""},
		{"uplink unknown", "uplink", nodes, nil, "", "give it with --fact uplink=…"},
		{"version", "version", nil, nil, "v1", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := newFacts(fake.NewClientset(tt.objects...), "v1", tt.given).get(context.Background(), tt.fact)
			wantError(t, err, tt.err)
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestCover(t *testing.T) {
	for _, tt := range []struct {
		in   []string
		want string
	}{
		{[]string{"10.244.3.0/24"}, "10.244.0.0/16"},
		{[]string{"10.244.255.0/24", "10.245.0.0/24"}, "10.244.0.0/15"},
		{[]string{"10.0.0.0/8"}, "10.0.0.0/8"},
		{[]string{"10.0.0.0/24", "192.168.0.0/24"}, "0.0.0.0/0"},
	} {
		var prefixes []netip.Prefix
		for _, s := range tt.in {
			prefixes = append(prefixes, netip.MustParsePrefix(s))
		}
		if got := cover(prefixes).String(); got != tt.want {
			t.Errorf("cover(%v) = %s, want %s", tt.in, got, tt.want)
		}
	}
}
