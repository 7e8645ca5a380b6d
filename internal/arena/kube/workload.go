package kube

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/cnibench/cnibench/internal/diagnose"
)

// podNamed returns the pod that a flag names as NAMESPACE/NAME.
func (cl *Cluster) podNamed(ctx context.Context, flag, value string) (*corev1.Pod, error) {
	namespace, name, ok := strings.Cut(value, "/")
	if !ok || namespace == "" || name == "" {
		return nil, &UsageError{fmt.Sprintf("--%s %s: want NAMESPACE/NAME", flag, value)}
	}
	p, err := ask(ctx, cl, "read pod "+value, func(ctx context.Context) (*corev1.Pod, error) {
		return cl.Client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	})
	if apierrors.IsNotFound(err) {
		return nil, &UsageError{fmt.Sprintf("--%s %s: there is no such pod", flag, value)}
	}
	return p, err
}

// bandwidth annotations of the plugin bandwidth; Cilium reads the second, too.
const (
	ingressBandwidth = "kubernetes.io/ingress-bandwidth"
	egressBandwidth  = "kubernetes.io/egress-bandwidth"
	// ambient is the annotation of Istio's CNI agent on pods whose traffic ztunnel takes.
	ambient = "ambient.istio.io/redirection"
)

// Workloads returns what the API server says of the pods that Options.Pod and Options.To
// name. Nothing is started in them.
func (a *Arena) Workloads(ctx context.Context) (list []diagnose.Snapshot, unseen []diagnose.Unseen, err error) {
	for _, w := range []struct{ flag, value string }{{"pod", a.opt.Pod}, {"to", a.opt.To}} {
		if w.value == "" {
			continue
		}
		p, err := a.cl.podNamed(ctx, w.flag, w.value)
		if err != nil {
			return nil, nil, err
		}
		s := workload(p)
		policies, err := a.cl.Client.NetworkingV1().NetworkPolicies(p.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			unseen = append(unseen, diagnose.Unseen{ID: "policy", Why: fmt.Sprintf("which policies select %s: %v", w.value, err), Remedy: "let this user list networkpolicies (cnibench rbac)"})
		} else {
			s.Policies = listSelecting(policies.Items, p.Labels)
		}
		list = append(list, s)
	}
	return list, unseen, nil
}

// workload reads a pod's object.
func workload(p *corev1.Pod) diagnose.Snapshot {
	s := diagnose.Snapshot{Endpoint: p.Namespace + "/" + p.Name, Node: p.Spec.NodeName, Pod: true, Yours: true, HostNetwork: p.Spec.HostNetwork, Containers: []string{}}
	limited := true
	for _, c := range p.Spec.InitContainers { // those that go on running are sidecars
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			s.Containers = append(s.Containers, c.Name)
		}
	}
	for _, c := range p.Spec.Containers {
		s.Containers = append(s.Containers, c.Name)
		limit, has := c.Resources.Limits[corev1.ResourceCPU]
		limited = limited && has
		s.CPULimit += limit.AsApproximateFloat64()
	}
	if !limited { // one container may use all of the node
		s.CPULimit = 0
	}
	if p.Annotations[ambient] == "enabled" {
		s.Containers = append(s.Containers, "ztunnel")
	}
	rate := func(annotation string) float64 {
		q, err := resource.ParseQuantity(p.Annotations[annotation])
		if err != nil {
			return 0
		}
		return q.AsApproximateFloat64()
	}
	s.Ingress, s.Egress = rate(ingressBandwidth), rate(egressBandwidth)
	return s
}

// listSelecting returns the names of the policies that select a pod with those labels.
func listSelecting(policies []networkingv1.NetworkPolicy, pod map[string]string) (names []string) {
	for i := range policies {
		selector, err := metav1.LabelSelectorAsSelector(&policies[i].Spec.PodSelector)
		if err == nil && selector.Matches(labels.Set(pod)) {
			names = append(names, policies[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// Policies returns the names of the NetworkPolicies that select the pods of the arena
// itself: only where an administrator's namespace has policies before the run.
func (a *Arena) Policies(ctx context.Context) []string {
	if len(a.opt.Within) == 0 {
		return nil
	}
	list, err := a.cl.Client.NetworkingV1().NetworkPolicies(a.opt.Within[0]).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	pod := maps.Clone(outOfMeshes)
	maps.Copy(pod, runLabels(""))
	return listSelecting(list.Items, pod)
}

// DNS returns the address of the cluster's DNS: that of the Service kube-dns, whose name
// products keep. The zero value: there is none, or this user may not see it.
func (a *Arena) DNS(ctx context.Context) netip.AddrPort {
	s, err := a.cl.Client.CoreV1().Services(metav1.NamespaceSystem).Get(ctx, "kube-dns", metav1.GetOptions{})
	if err != nil {
		return netip.AddrPort{}
	}
	addr, err := netip.ParseAddr(s.Spec.ClusterIP)
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(addr, 53)
}

// PodCounters are counters that the kubelet of a pod's node keeps of the pod.
type PodCounters struct {
	Values map[string]float64 // as package sysmon names them, summed over containers and devices
	At     float64            // s since 1970, of the newest
}

// Counters asks the kubelet of a pod's node for the pod's counters. That takes the right
// to get nodes/proxy, which administrators have.
func (cl *Cluster) Counters(ctx context.Context, node, pod string) (PodCounters, error) {
	client, ok := cl.Client.CoreV1().RESTClient().(*rest.RESTClient)
	if !ok || client == nil {
		return PodCounters{}, fmt.Errorf("no way to the kubelet of %s", node)
	}
	r, err := client.Get().AbsPath("/api/v1/nodes", node, "proxy/metrics/cadvisor").Stream(ctx)
	if err != nil {
		return PodCounters{}, err
	}
	defer r.Close()
	namespace, name, _ := strings.Cut(pod, "/")
	return parseCAdvisor(r, namespace, name)
}

// cAdvisor's counters that are kept, by their names without _total.
var cAdvisor = []string{
	"container_cpu_cfs_periods", "container_cpu_cfs_throttled_periods", "container_cpu_cfs_throttled_seconds",
	"container_network_receive_bytes", "container_network_transmit_bytes",
}

// parseCAdvisor sums the counters of a pod in the text format of Prometheus, as the kubelet
// writes it at /metrics/cadvisor.
func parseCAdvisor(r io.Reader, namespace, pod string) (PodCounters, error) {
	c := PodCounters{Values: map[string]float64{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, rest, ok := strings.Cut(lines.Text(), "{")
		name = strings.TrimSuffix(name, "_total")
		if !ok || !slices.Contains(cAdvisor, name) {
			continue
		}
		end := strings.LastIndex(rest, "}")
		if end < 0 {
			continue
		}
		label := "," + rest[:end] + ","
		if !strings.Contains(label, `,namespace="`+namespace+`",`) || !strings.Contains(label, `,pod="`+pod+`",`) {
			continue
		}
		// The pod's own cgroup is listed beside its containers'. Only containers count.
		if strings.HasPrefix(name, "container_cpu") && (strings.Contains(label, `,container="",`) || !strings.Contains(label, `,container="`)) {
			continue
		}
		fields := strings.Fields(rest[end+1:])
		if len(fields) == 0 {
			continue
		}
		v, err := strconv.ParseFloat(fields[0], 64)
		if err != nil || !(v >= 0) {
			continue
		}
		c.Values[name] += v
		if len(fields) > 1 {
			if ms, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				c.At = max(c.At, float64(ms)/1000)
			}
		}
	}
	return c, lines.Err()
}
