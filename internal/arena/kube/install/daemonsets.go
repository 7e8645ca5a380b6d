package install

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// paused is a label in the node selector of others' DaemonSets while a product is
// uninstalled. No node has it, so that their controller removes their pods, which must be
// detached while the product's plugin exists, and makes no new ones.
const paused = "cnibench.io/paused"

// pauseDaemonSets pauses the DaemonSets that were there before the product and have pods in
// its network. The product's own go with it.
func (j *job) pauseDaemonSets(ctx context.Context) error {
	pods, err := allPods(ctx, j.cl.Client)
	if err != nil {
		return err
	}
	done := map[string]bool{}
	for i := range pods {
		p := &pods[i]
		o := object("apps/v1", "DaemonSet", p.Namespace, daemonSetOf(p))
		key := textOf(o)
		if o.GetName() == "" || !usesPodNetwork(p) || done[key] || !j.existedBefore(key) {
			continue
		}
		done[key] = true
		if err := j.patchDaemonSet(ctx, o.GetNamespace(), o.GetName(), `"true"`); err != nil {
			return err
		}
	}
	return nil
}

// resumeDaemonSets resumes all that are paused, whoever paused them.
func (j *job) resumeDaemonSets(ctx context.Context) error {
	list, err := fetch(ctx, j.patience, "list DaemonSets", func(ctx context.Context) (*appsv1.DaemonSetList, error) {
		return j.cl.Client.AppsV1().DaemonSets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	})
	if err != nil {
		return err
	}
	for _, ds := range list.Items {
		if ds.Spec.Template.Spec.NodeSelector[paused] == "" {
			continue
		}
		if err := j.patchDaemonSet(ctx, ds.Namespace, ds.Name, "null"); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) patchDaemonSet(ctx context.Context, namespace, name, value string) error {
	patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"nodeSelector":{%q:%s}}}}}`, paused, value)
	return j.retry(ctx, "change DaemonSet "+namespace+"/"+name, func(ctx context.Context) error {
		_, err := j.cl.Client.AppsV1().DaemonSets(namespace).Patch(ctx, name, mergePatch, []byte(patch), metav1.PatchOptions{FieldManager: manager})
		return err
	})
}

// daemonSetOf returns the name of the DaemonSet that the pod is of; "" for none.
func daemonSetOf(p *corev1.Pod) string {
	if owner := metav1.GetControllerOf(p); owner != nil && owner.Kind == "DaemonSet" {
		return owner.Name
	}
	return ""
}
