package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/arena/kube"
)

// ScratchLabel marks a cluster as scratch on its namespace kube-system, and a
// namespace as one whose workloads may lose their network.
const ScratchLabel = "cnibench.io/scratch"

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
	list, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list namespaces: %w", err)
	}
	marked := i.o.Scratch
	exempt := map[string]bool{}
	for _, ns := range list.Items {
		labelled := ns.Labels[ScratchLabel] == "true"
		if ns.Name == "kube-system" && labelled {
			marked = true
		}
		exempt[ns.Name] = labelled && ns.Name != "kube-system" || isOwn(&ns)
	}
	if !marked {
		return unsupported("if everything on it may go, run with --scratch, or: kubectl label namespace kube-system "+ScratchLabel+"=true",
			"the cluster is not marked as scratch, and --install replaces its pod network again and again")
	}
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	var foreign []string
	for _, p := range pods.Items {
		system := strings.HasPrefix(p.Namespace, "kube-")
		comesBack := (system || p.Namespace == "default") && metav1.GetControllerOf(&p) != nil
		if exempt[p.Namespace] || ended(&p) || comesBack || system && p.Spec.HostNetwork {
			continue
		}
		foreign = append(foreign, p.Namespace+"/"+p.Name)
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
