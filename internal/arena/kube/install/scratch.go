package install

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/arena/kube"
)

// ScratchLabel marks a cluster as scratch on its namespace kube-system, and a
// namespace as one whose workloads may lose their network.
const ScratchLabel = "cnibench.io/scratch"

// lookPatience is how long the API server may be away while this looks.
const lookPatience = time.Minute

// scratch is the rule by which a cluster is refused:
//
//   - it must be marked: namespace kube-system has ScratchLabel "true", or the
//     user said so by a flag;
//   - no foreign workload may run: a pod in a namespace other than kube-*,
//     default and those of this program, unless that namespace has the label;
//     in kube-* and default a pod without a controller, which would not come
//     back, but for those of kube-* in the host network, which stay.
//
// Nothing is changed.
func (i *Installer) scratch(ctx context.Context, client kube.Client) error {
	if err := i.requireMark(ctx, client, "--install replaces its pod network again and again"); err != nil {
		return err
	}
	exempt, err := exemptNamespaces(ctx, client)
	if err != nil {
		return err
	}
	return refusePods(ctx, client, func(p *corev1.Pod) bool {
		system := strings.HasPrefix(p.Namespace, "kube-")
		comesBack := (system || p.Namespace == "default") && metav1.GetControllerOf(p) != nil
		return exempt[p.Namespace] || ended(p) || comesBack || system && p.Spec.HostNetwork
	})
}

// requireMark refuses a cluster that is not marked as scratch.
func (i *Installer) requireMark(ctx context.Context, client kube.Client, why string) error {
	if i.o.Scratch {
		return nil
	}
	var ns *corev1.Namespace
	err := persist(ctx, lookPatience, "look for the mark of a scratch cluster", func(ctx context.Context) (err error) {
		ns, err = client.CoreV1().Namespaces().Get(ctx, "kube-system", metav1.GetOptions{})
		return err
	})
	if err != nil {
		return err
	}
	if ns.Labels[ScratchLabel] == "true" {
		return nil
	}
	return unsupported("if everything on it may go, give --scratch, or: kubectl label namespace kube-system "+ScratchLabel+"=true",
		"the cluster is not marked as scratch, and %s", why)
}

// exemptNamespaces are those whose pods may go: namespaces with the label, and
// this program's own.
func exemptNamespaces(ctx context.Context, client kube.Client) (map[string]bool, error) {
	var list *corev1.NamespaceList
	err := persist(ctx, lookPatience, "list namespaces", func(ctx context.Context) (err error) {
		list, err = client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		return err
	})
	if err != nil {
		return nil, err
	}
	exempt := map[string]bool{}
	for _, ns := range list.Items {
		exempt[ns.Name] = ns.Labels[ScratchLabel] == "true" && ns.Name != "kube-system" || isOwn(&ns)
	}
	return exempt, nil
}

// requireNoBarePods refuses to take the pod network from pods without a
// controller: nothing would make them again.
func requireNoBarePods(ctx context.Context, client kube.Client) error {
	exempt, err := exemptNamespaces(ctx, client)
	if err != nil {
		return err
	}
	return refusePods(ctx, client, func(p *corev1.Pod) bool {
		return exempt[p.Namespace] || !usesPodNetwork(p) || metav1.GetControllerOf(p) != nil
	})
}

// refusePods returns a refusal that lists the cluster's pods unless all may go.
func refusePods(ctx context.Context, client kube.Client, mayGo func(*corev1.Pod) bool) error {
	pods, err := allPods(ctx, client)
	if err != nil {
		return err
	}
	var foreign []string
	for _, p := range pods {
		if !mayGo(&p) {
			foreign = append(foreign, p.Namespace+"/"+p.Name)
		}
	}
	if len(foreign) == 0 {
		return nil
	}
	slices.Sort(foreign)
	return unsupported("remove them, or label their namespaces "+ScratchLabel+"=true if they may lose their network, and those without a controller may go",
		"foreign workloads run on the cluster: %s", listing(foreign))
}

// ended is whether nothing of the pod runs any more, and it has no network.
func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// isOwn is whether this program made the namespace.
func isOwn(ns *corev1.Namespace) bool {
	return ns.Name == ownNamespace || ns.Labels["app.kubernetes.io/managed-by"] == "cnibench"
}

// allPods are those of all namespaces.
func allPods(ctx context.Context, client kube.Client) ([]corev1.Pod, error) {
	var pods *corev1.PodList
	err := persist(ctx, lookPatience, "list pods", func(ctx context.Context) (err error) {
		pods, err = client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		return err
	})
	if err != nil {
		return nil, err
	}
	return pods.Items, nil
}
