package kube

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/unit"
)

// product is a pod network, known by the DaemonSet that it runs on every node.
type product struct {
	daemonSet string // its name, whatever the namespace
	name      string
	// config is the name of a ConfigMap in the DaemonSet's namespace, from which read
	// fills in the datapath; "" for none.
	config string
	read   func(data map[string]string, d *contender.Datapath)
}

// products returns the products that are recognised. The first match counts, so a product
// that includes another one's DaemonSet comes first.
func products() []product {
	return []product{
		{daemonSet: "canal", name: "Canal"},
		{daemonSet: "kube-ovn-cni", name: "Kube-OVN"},
		{daemonSet: "cilium", name: "Cilium", config: "cilium-config", read: readCilium},
		{daemonSet: "anetd", name: "GKE Dataplane V2 (Cilium)", config: "cilium-config", read: readCilium},
		{daemonSet: "calico-node", name: "Calico"},
		{daemonSet: "kube-flannel-ds", name: "Flannel", config: "kube-flannel-cfg", read: readFlannel},
		{daemonSet: "kube-flannel", name: "Flannel", config: "kube-flannel-cfg", read: readFlannel},
		{daemonSet: "antrea-agent", name: "Antrea"},
		{daemonSet: "kube-router", name: "Kube-router"},
		{daemonSet: "weave-net", name: "Weave Net"},
		{daemonSet: "ovnkube-node", name: "OVN-Kubernetes"},
		{daemonSet: "aws-node", name: "Amazon VPC CNI"},
		{daemonSet: "azure-cns", name: "Azure CNI"},
		{daemonSet: "kindnet", name: "kindnet"},
	}
}

// configMaps returns the names of all ConfigMaps that products read.
func configMaps() []string {
	var names []string
	for _, p := range products() {
		if p.config != "" && !slices.Contains(names, p.config) {
			names = append(names, p.config)
		}
	}
	return names
}

// flannelBackend is the annotation that flannel puts on nodes, also when flannel runs
// inside another program, as in K3s.
const flannelBackend = "flannel.alpha.coreos.com/backend-type"

// recognise returns the cluster's pod network as a contender. Fields that can't be read
// stay unknown.
func (cl *Cluster) recognise(ctx context.Context) *contender.Contender {
	c := &contender.Contender{
		ID: ThisClusterID, Product: "unknown", Summary: "the pod network that the cluster has, measured as it is",
		Features: contender.Features{Encryption: "none", Status: "active"},
	}
	if len(cl.Options.Within) > 0 {
		return c // no right to read DaemonSets of other namespaces
	}
	sets, err := cl.Client.AppsV1().DaemonSets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err == nil {
		p, set := find(sets.Items)
		if set != nil {
			c.Product, c.Version = p.name, imageVersion(set)
			if p.config != "" {
				if m, err := cl.Client.CoreV1().ConfigMaps(set.Namespace).Get(ctx, p.config, metav1.GetOptions{}); err == nil {
					p.read(m.Data, &c.Datapath)
				}
			}
		}
	}
	if nodes, err := cl.listNodes(ctx); err == nil && c.Product == "unknown" && len(nodes) > 0 {
		if backend := nodes[0].Annotations[flannelBackend]; backend != "" {
			c.Product = "Flannel"
			tunnel(&c.Datapath, backend)
		}
	}
	return c
}

// find returns the first product whose DaemonSet is in the list.
func find(sets []appsv1.DaemonSet) (product, *appsv1.DaemonSet) {
	for _, p := range products() {
		for i := range sets {
			if sets[i].Name == p.daemonSet {
				return p, &sets[i]
			}
		}
	}
	return product{}, nil
}

// imageVersion returns the tag of the first container's image, without a leading v.
func imageVersion(set *appsv1.DaemonSet) string {
	containers := set.Spec.Template.Spec.Containers
	if len(containers) == 0 {
		return ""
	}
	image, _, _ := strings.Cut(containers[0].Image, "@")
	at := strings.LastIndex(image, ":")
	if at < 0 || strings.Contains(image[at:], "/") {
		return ""
	}
	return strings.TrimPrefix(image[at+1:], "v")
}

// tunnel sets the datapath's encapsulation and its overhead over IPv4, bytes: RFC 7348
// and RFC 8926 (without options) over UDP, RFC 2003, and for WireGuard its header with
// the outer headers.
func tunnel(d *contender.Datapath, kind string) {
	overhead := map[string]unit.Bytes{"vxlan": 50, "geneve": 50, "ipip": 20, "wireguard": 60, "udp": 28}
	if n, known := overhead[kind]; known {
		d.Transport, d.Encapsulation, d.Overhead = kind, kind, n
		d.Source = "the configuration of the cluster"
		return
	}
	if kind == "host-gw" {
		d.Transport = "routes"
	}
}

// readFlannel reads net-conf.json of flannel's ConfigMap.
func readFlannel(data map[string]string, d *contender.Datapath) {
	var conf struct{ Backend struct{ Type string } }
	if json.Unmarshal([]byte(data["net-conf.json"]), &conf) == nil {
		tunnel(d, strings.ToLower(conf.Backend.Type))
	}
	d.Attach = "bridge"
}

// readCilium reads cilium-config.
func readCilium(data map[string]string, d *contender.Datapath) {
	d.Attach, d.Services = "veth+ebpf", "kube-proxy+ebpf"
	if data["kube-proxy-replacement"] == "true" || data["kube-proxy-replacement"] == "strict" {
		d.Services = "ebpf"
	}
	protocol := data["tunnel-protocol"]
	if old := data["tunnel"]; old != "" && old != "disabled" { // before 1.14
		protocol = old
	}
	if protocol == "" {
		protocol = "vxlan"
	}
	if data["routing-mode"] == "native" || data["tunnel"] == "disabled" {
		d.Transport = "routes"
		return
	}
	tunnel(d, protocol)
}

// nodeFacts returns what a node reports about itself.
func nodeFacts(info corev1.NodeSystemInfo) map[string]string {
	return map[string]string{
		"kernel": info.KernelVersion, "kubelet": info.KubeletVersion, "runtime": info.ContainerRuntimeVersion,
		"os": info.OSImage, "architecture": info.Architecture,
	}
}
