package install

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/contender"
)

// facts are values of a cluster that recipes need, each found when it is first needed.
type facts struct {
	client kube.Client
	known  map[string]string
	// uplinks are the nodes' interfaces, from the survey.
	uplinks map[string]string
}

func newFacts(client kube.Client, version string, given map[string]string) *facts {
	known := map[string]string{"version": version}
	maps.Copy(known, given)
	return &facts{client: client, known: known}
}

// get finds a fact. The error says how the user can give the fact.
func (f *facts) get(ctx context.Context, name string) (string, error) {
	if value, ok := f.known[name]; ok {
		return value, nil
	}
	find := map[string]func(context.Context) (string, error){
		"pod-cidr":          f.podCIDR,
		"service-cidr":      f.serviceCIDR,
		"api-host":          func(ctx context.Context) (string, error) { host, _, err := f.apiServer(ctx); return host, err },
		"api-port":          func(ctx context.Context) (string, error) { _, port, err := f.apiServer(ctx); return port, err },
		"control-plane-ips": f.controlPlane,
		"uplink":            f.uplink,
	}[name]
	if find == nil {
		return "", fmt.Errorf("nothing in a cluster says %s; give it with --fact %s=… (docs/install.md says what it is)", name, name)
	}
	value, err := find(ctx)
	if err != nil {
		return "", fmt.Errorf("%w; give it with --fact %s=…", err, name)
	}
	f.known[name] = value
	return value, nil
}

// all returns the facts that are given or can be found. The recipe may not need the
// others.
func (f *facts) all(ctx context.Context) map[string]string {
	for _, name := range contender.Placeholders() {
		_, _ = f.get(ctx, name)
	}
	return maps.Clone(f.known)
}

// podCIDR returns the pods' network by kubeadm's configuration or the components' flags,
// else the smallest network that contains every node's share. If there are IPv4 and IPv6,
// it returns IPv4.
func (f *facts) podCIDR(ctx context.Context) (string, error) {
	if networking := f.kubeadm(ctx); networking.PodSubnet != "" {
		return ipv4(networking.PodSubnet), nil
	}
	if value := f.flag(ctx, "kube-controller-manager", "--cluster-cidr"); value != "" {
		return ipv4(value), nil
	}
	nodes, err := f.list(ctx)
	if err != nil {
		return "", err
	}
	var shares []netip.Prefix
	for _, n := range nodes {
		for _, cidr := range append([]string{n.Spec.PodCIDR}, n.Spec.PodCIDRs...) {
			if p, err := netip.ParsePrefix(cidr); err == nil && p.Addr().Is4() {
				shares = append(shares, p)
			}
		}
	}
	if len(shares) == 0 {
		return "", fmt.Errorf("the pods' network is not known: nodes have no podCIDR, and the cluster has neither kubeadm's configuration nor a controller manager whose flags name it")
	}
	return cover(shares).String(), nil
}

// cover returns the smallest prefix that contains all, but at most a /16, the usual size
// of the network that nodes get shares of.
func cover(prefixes []netip.Prefix) netip.Prefix {
	first := prefixes[0]
	for bits := min(first.Bits(), 16); ; bits-- {
		p := netip.PrefixFrom(first.Addr(), bits).Masked()
		if bits == 0 || !slices.ContainsFunc(prefixes, func(q netip.Prefix) bool { return !p.Contains(q.Addr()) || q.Bits() < bits }) {
			return p
		}
	}
}

// serviceCIDR returns the Services' network by the API (ServiceCIDR, Kubernetes 1.33 and
// later), else by kubeadm's configuration or the API server's flags.
func (f *facts) serviceCIDR(ctx context.Context) (string, error) {
	if c, err := f.client.NetworkingV1().ServiceCIDRs().Get(ctx, "kubernetes", metav1.GetOptions{}); err == nil && len(c.Spec.CIDRs) > 0 {
		return ipv4(strings.Join(c.Spec.CIDRs, ",")), nil
	}
	if networking := f.kubeadm(ctx); networking.ServiceSubnet != "" {
		return ipv4(networking.ServiceSubnet), nil
	}
	if value := f.flag(ctx, "kube-apiserver", "--service-cluster-ip-range"); value != "" {
		return ipv4(value), nil
	}
	return "", fmt.Errorf("the Services' network is not known: the cluster has no ServiceCIDR, no kubeadm configuration and no API server whose flags name it")
}

// apiServer returns the first address behind the Service kubernetes, which needs no
// kube-proxy.
func (f *facts) apiServer(ctx context.Context) (host, port string, err error) {
	endpointSlices, err := f.client.DiscoveryV1().EndpointSlices("default").List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=kubernetes"})
	if err != nil {
		return "", "", fmt.Errorf("the API server's address: %w", err)
	}
	for _, s := range endpointSlices.Items {
		if len(s.Endpoints) > 0 && len(s.Endpoints[0].Addresses) > 0 && len(s.Ports) > 0 && s.Ports[0].Port != nil {
			return s.Endpoints[0].Addresses[0], strconv.Itoa(int(*s.Ports[0].Port)), nil
		}
	}
	return "", "", fmt.Errorf("the API server's address is not known: the Service default/kubernetes has no endpoints")
}

func (f *facts) controlPlane(ctx context.Context) (string, error) {
	names, err := f.nodes(ctx, "control-plane")
	if err != nil {
		return "", err
	}
	all, err := f.list(ctx)
	if err != nil {
		return "", err
	}
	var ips []string
	for _, n := range all {
		if slices.Contains(names, n.Name) {
			ips = append(ips, internalIP(&n))
		}
	}
	return strings.Join(ips, ","), nil
}

func (f *facts) uplink(context.Context) (string, error) {
	found := slices.Compact(slices.Sorted(maps.Values(f.uplinks)))
	if len(found) != 1 || found[0] == "" {
		return "", fmt.Errorf("the nodes' interface on the underlay is not one name: %v", f.uplinks)
	}
	return found[0], nil
}

// nodes returns the names of "all" nodes, or of the "control-plane": the nodes with that
// role, else the first node.
func (f *facts) nodes(ctx context.Context, which string) ([]string, error) {
	all, err := f.list(ctx)
	if err != nil {
		return nil, err
	}
	var names, controlPlane []string
	for _, n := range all {
		names = append(names, n.Name)
		if _, ok := n.Labels["node-role.kubernetes.io/control-plane"]; ok {
			controlPlane = append(controlPlane, n.Name)
		}
	}
	switch {
	case which == "all":
		return names, nil
	case len(controlPlane) > 0:
		return controlPlane, nil
	}
	return names[:1], nil
}

func (f *facts) list(ctx context.Context) ([]corev1.Node, error) {
	list, err := fetch(ctx, time.Minute, "list nodes", func(ctx context.Context) (*corev1.NodeList, error) {
		return f.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	})
	if err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, newUnsupported("join one", "the cluster has no node")
	}
	slices.SortFunc(list.Items, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

func internalIP(n *corev1.Node) string {
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	return ""
}

type networking struct {
	PodSubnet     string `json:"podSubnet"`
	ServiceSubnet string `json:"serviceSubnet"`
}

// kubeadm returns the networks of kubeadm's configuration; empty on other clusters.
func (f *facts) kubeadm(ctx context.Context) networking {
	var config struct {
		Networking networking `json:"networking"`
	}
	cm, err := f.client.CoreV1().ConfigMaps("kube-system").Get(ctx, "kubeadm-config", metav1.GetOptions{})
	if err != nil {
		return networking{}
	}
	data, err := yaml.YAMLToJSON([]byte(cm.Data["ClusterConfiguration"]))
	if err != nil || json.Unmarshal(data, &config) != nil {
		return networking{}
	}
	return config.Networking
}

// flag returns the value of a component's flag; "" if the component is no pod.
func (f *facts) flag(ctx context.Context, component, name string) string {
	pods, err := f.client.CoreV1().Pods("kube-system").List(ctx, metav1.ListOptions{LabelSelector: "component=" + component})
	if err != nil {
		return ""
	}
	for _, pod := range pods.Items {
		for _, c := range pod.Spec.Containers {
			for _, arg := range append(slices.Clone(c.Command), c.Args...) {
				if value, ok := strings.CutPrefix(arg, name+"="); ok {
					return value
				}
			}
		}
	}
	return ""
}

// ipv4 returns the first IPv4 network of a list with commas, else the first network.
func ipv4(list string) string {
	all := strings.Split(list, ",")
	for _, cidr := range all {
		if p, err := netip.ParsePrefix(strings.TrimSpace(cidr)); err == nil && p.Addr().Is4() {
			return p.String()
		}
	}
	return strings.TrimSpace(all[0])
}
