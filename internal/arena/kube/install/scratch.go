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

// ScratchLabel on the namespace kube-system marks a cluster as scratch. On another
// namespace it says that the workloads there may lose their network.
const ScratchLabel = "cnibench.io/scratch"

// listPatience is how long the API server may not answer during the checks.
const listPatience = time.Minute

// Check returns an *arena.Unsupported unless
//
//   - the cluster is marked as scratch, by ScratchLabel "true" on the namespace
//     kube-system or by a flag, and
//   - no foreign workload runs. Foreign are pods in namespaces other than kube-*,
//     default, this program's and those with the label. In kube-* and default, pods
//     without a controller are foreign, since nothing would make them again, except
//     pods of kube-* in the host network, which stay.
//
// It changes nothing. Install checks the same.
func (i *Installer) Check(ctx context.Context, cl *kube.Cluster) error {
	if err := i.requireMark(ctx, cl.Client, "--install replaces its pod network again and again"); err != nil {
		return err
	}
	exempt, err := exemptNamespaces(ctx, cl.Client)
	if err != nil {
		return err
	}
	return refusePods(ctx, cl.Client, func(p *corev1.Pod) bool {
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
	ns, err := fetch(ctx, listPatience, "look for the mark of a scratch cluster", func(ctx context.Context) (*corev1.Namespace, error) {
		return client.CoreV1().Namespaces().Get(ctx, "kube-system", metav1.GetOptions{})
	})
	if err != nil {
		return err
	}
	if ns.Labels[ScratchLabel] == "true" {
		return nil
	}
	return newUnsupported("if everything on it may go, give --scratch, or: kubectl label namespace kube-system "+ScratchLabel+"=true",
		"the cluster is not marked as scratch, and %s", why)
}

// exemptNamespaces returns the namespaces whose pods may be deleted: those with the label,
// and this program's own.
func exemptNamespaces(ctx context.Context, client kube.Client) (map[string]bool, error) {
	list, err := fetch(ctx, listPatience, "list namespaces", func(ctx context.Context) (*corev1.NamespaceList, error) {
		return client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
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

// requireNoBarePods returns an error if a pod in the pod network has no controller:
// nothing would make the pod again.
func requireNoBarePods(ctx context.Context, client kube.Client) error {
	exempt, err := exemptNamespaces(ctx, client)
	if err != nil {
		return err
	}
	return refusePods(ctx, client, func(p *corev1.Pod) bool {
		return exempt[p.Namespace] || !usesPodNetwork(p) || metav1.GetControllerOf(p) != nil
	})
}

// refusePods returns an *arena.Unsupported that lists the cluster's pods that may not be
// deleted; nil if all may.
func refusePods(ctx context.Context, client kube.Client, mayDelete func(*corev1.Pod) bool) error {
	pods, err := allPods(ctx, client)
	if err != nil {
		return err
	}
	var foreign []string
	for _, p := range pods {
		if !mayDelete(&p) {
			foreign = append(foreign, p.Namespace+"/"+p.Name)
		}
	}
	if len(foreign) == 0 {
		return nil
	}
	slices.Sort(foreign)
	return newUnsupported("remove them, or label their namespaces "+ScratchLabel+"=true if they may lose their network, and those without a controller may go",
		"foreign workloads run on the cluster: %s", joinList(foreign))
}

// ended reports whether the pod has ended. Such a pod is detached from the network.
func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// isOwn reports whether this program made the namespace.
func isOwn(ns *corev1.Namespace) bool {
	return ns.Name == ownNamespace || ns.Labels["app.kubernetes.io/managed-by"] == "cnibench"
}

// allPods returns the pods of all namespaces.
func allPods(ctx context.Context, client kube.Client) ([]corev1.Pod, error) {
	pods, err := fetch(ctx, listPatience, "list pods", func(ctx context.Context) (*corev1.PodList, error) {
		return client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	})
	if err != nil {
		return nil, err
	}
	return pods.Items, nil
}
