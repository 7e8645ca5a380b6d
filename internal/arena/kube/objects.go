package kube

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
)

// Labels of all objects that a run makes. Clean removes objects with labelManaged and
// labelRun.
const (
	labelManaged = "app.kubernetes.io/managed-by"
	managedBy    = "cnibench"
	labelRun     = "cnibench.io/run" // the name of the run's first namespace
	// labelEnforce is the Pod Security level of a namespace.
	labelEnforce = "pod-security.kubernetes.io/enforce"
)

// dir is the pods' folder in memory, which Endpoint.Dir returns.
const dir = "/run/cnibench"

// runSelector selects the namespaces that runs have made.
const runSelector = labelManaged + "=" + managedBy + "," + labelRun

// outOfMeshes keep service meshes from adding their proxy to a pod. Some meshes read
// labels, some annotations.
var outOfMeshes = map[string]string{
	"sidecar.istio.io/inject": "false", "istio.io/dataplane-mode": "none", "linkerd.io/inject": "disabled",
	"kuma.io/sidecar-injection": "disabled", "consul.hashicorp.com/connect-inject": "false",
}

// runLabels returns the labels of all objects of that run.
func runLabels(run string) map[string]string {
	return map[string]string{labelManaged: managedBy, labelRun: run}
}

// namespaceFor returns a namespace with that Pod Security level.
func namespaceFor(run, name, level string, labels map[string]string) *corev1.Namespace {
	all := maps.Clone(labels)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, runLabels(run))
	all[labelEnforce] = level
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: all,
		Annotations: map[string]string{"cnibench.io/about": "made by a cnibench run, which removes it at its end; cnibench clean --arena kube does so after a crash"},
	}}
}

// podPlan holds the properties in which pods differ.
type podPlan struct {
	namespace, name string
	node            *node
	hostNetwork     bool
	privileged      bool
	// onNode is for install/node: privileged, with the node's network and processes,
	// and tolerating all taints.
	onNode      bool
	tolerateAll bool // all taints
	// restricted is what the Pod Security level of that name wants.
	restricted bool
	labels     map[string]string
	ports      []arena.NamedPort
	command    []string // of the first process; nil: it waits, and exec streams start commands in the pod
}

// How long a pod may run. agent.Idle ends pods of a killed run long before that.
const (
	podLife    = 24 * time.Hour // enough for a round
	onNodeLife = time.Hour      // of a pod for install/node
)

// object returns the pod.
func (p podPlan) object(run string, cl *Cluster) (*corev1.Pod, error) {
	o := &cl.Options
	tolerated, err := tolerations(o.Tolerations)
	if err != nil {
		return nil, err
	}
	limits, err := limits(o)
	if err != nil {
		return nil, err
	}
	labels := runLabels(run)
	maps.Copy(labels, outOfMeshes)
	maps.Copy(labels, p.labels)
	image, policy := cl.image()
	no, grace := false, int64(1) // the first process ends at once when asked
	life := int64(podLife / time.Second)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: p.name, Labels: labels, Annotations: maps.Clone(outOfMeshes)},
		Spec: corev1.PodSpec{
			NodeName: p.node.realName, HostNetwork: p.hostNetwork, Tolerations: tolerated,
			RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace, ActiveDeadlineSeconds: &life,
			DNSPolicy: corev1.DNSDefault, // pods use no names, and the cluster may have no DNS
			// No token, and no environment variables for thousands of Services.
			AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
			Containers: []corev1.Container{{
				Name: container, Image: cmp.Or(image, "busybox"), // a dry run comes before the choice
				ImagePullPolicy: corev1.PullPolicy(policy),
				Command:         []string{"sh", "-c", boot, "sh", Program, dir, fmt.Sprint(int(agent.Patience / time.Second)), agent.ErrAbandoned.Error()},
				// The pod's status then says why the first process ended by itself.
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
				Resources:                corev1.ResourceRequirements{Requests: limits, Limits: limits},
				VolumeMounts:             []corev1.VolumeMount{{Name: "run", MountPath: dir}},
			}},
			Volumes: []corev1.Volume{{Name: "run", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}}},
		},
	}
	c := &pod.Spec.Containers[0]
	if p.command != nil {
		c.Command = p.command
	}
	if p.hostNetwork {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, noNetworkYet...)
	}
	if p.privileged || p.onNode {
		yes := true
		c.SecurityContext = &corev1.SecurityContext{Privileged: &yes}
	}
	root := int64(0)
	if o.NetAdmin && c.SecurityContext == nil && !p.hostNetwork && !p.tolerateAll {
		c.SecurityContext = &corev1.SecurityContext{RunAsUser: &root, Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN"}}}
	}
	if p.onNode {
		life = int64(onNodeLife / time.Second)
		pod.Spec.HostNetwork, pod.Spec.HostPID = true, true
		c.SecurityContext.RunAsUser = &root
	}
	if p.onNode || p.tolerateAll {
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	if p.restricted {
		yes, nobody := true, int64(65534)
		c.SecurityContext = &corev1.SecurityContext{
			RunAsNonRoot: &yes, RunAsUser: &nobody, AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
			Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		}
	}
	for _, port := range p.ports {
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: port.Name, ContainerPort: int32(port.Number), Protocol: corev1.Protocol(port.Protocol)})
	}
	return pod, nil
}

// limits returns the options' requests and limits of a pod; nil: none.
func limits(o *Options) (corev1.ResourceList, error) {
	var list corev1.ResourceList
	for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: o.CPU, corev1.ResourceMemory: o.Memory} {
		if text == "" {
			continue
		}
		q, err := resource.ParseQuantity(text)
		if err != nil || q.Sign() <= 0 {
			return nil, &UsageError{fmt.Sprintf("%s %q: want a quantity as Kubernetes writes it: 2, 500m, 1Gi", name, text)}
		}
		if list == nil {
			list = corev1.ResourceList{}
		}
		list[name] = q
	}
	return list, nil
}

// backend is one port of a Service with the server behind it.
type backend struct {
	protocol string
	port     uint16 // of the Service
	at       netip.AddrPort
	node     string // its name in the cluster
}

func (b backend) name() string { return fmt.Sprintf("%s-%d", strings.ToLower(b.protocol), b.port) }

// serviceFor returns a Service without a selector, so that its ports can have different
// servers, and an EndpointSlice for each server.
func serviceFor(run, namespace, name, kind string, backends []backend) (*corev1.Service, []*discoveryv1.EndpointSlice) {
	labels := runLabels(run)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
	switch kind {
	case NodePort:
		service.Spec.Type = corev1.ServiceTypeNodePort
	case Headless:
		service.Spec.ClusterIP = corev1.ClusterIPNone
	}
	slices := map[netip.Addr]*discoveryv1.EndpointSlice{}
	var list []*discoveryv1.EndpointSlice
	for _, b := range backends {
		protocol, portName, number := corev1.Protocol(b.protocol), b.name(), int32(b.at.Port())
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Name: portName, Protocol: protocol, Port: int32(b.port)})
		addr := b.at.Addr()
		s := slices[addr]
		if s == nil {
			ready, family := true, discoveryv1.AddressTypeIPv4
			if addr.Is6() {
				family = discoveryv1.AddressTypeIPv6
			}
			s = &discoveryv1.EndpointSlice{
				ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s-%d", name, len(list)+1), Labels: maps.Clone(labels)},
				AddressType: family,
				Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{addr.String()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}, NodeName: &b.node}},
			}
			s.Labels[discoveryv1.LabelServiceName] = name
			s.Labels[discoveryv1.LabelManagedBy] = managedBy
			slices[addr], list = s, append(list, s)
		}
		s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: &portName, Protocol: &protocol, Port: &number})
	}
	return service, list
}
