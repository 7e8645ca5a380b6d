package install

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/arena/kube/install/node"
	"github.com/cnibench/cnibench/internal/contender"
)

// kubeProxyChains are the prefixes of kube-proxy's chains (kubernetes
// pkg/proxy/iptables/proxier.go), without those of kubelet, KUBE-KUBELET-CANARY and
// KUBE-FIREWALL.
var kubeProxyChains = []string{
	"KUBE-SVC-", "KUBE-SVL-", "KUBE-SEP-", "KUBE-EXT-", "KUBE-FW-", "KUBE-SERVICES", "KUBE-EXTERNAL-SERVICES",
	"KUBE-NODEPORTS", "KUBE-PROXY-FIREWALL", "KUBE-FORWARD", "KUBE-POSTROUTING", "KUBE-MARK-MASQ",
}

// kubeProxyOff is a label in the node selector of kube-proxy. No node has it.
const kubeProxyOff = "cnibench.io/no-kube-proxy"

// switchKubeProxy switches kube-proxy off if the recipe needs that, and on if it was switched
// off, whatever the recipe says by then; both if it is the usual DaemonSet.
func (j *job) switchKubeProxy(ctx context.Context, on bool) error {
	if !on && j.c.Kube.KubeProxy != "off" {
		return nil
	}
	sets := j.cl.Client.AppsV1().DaemonSets("kube-system")
	var wanted bool
	err := j.retry(ctx, "look for kube-proxy", func(ctx context.Context) error {
		ds, err := sets.Get(ctx, "kube-proxy", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil // checkKubeProxy has found no other kube-proxy
		}
		if err == nil {
			_, off := ds.Spec.Template.Spec.NodeSelector[kubeProxyOff]
			wanted = !on || off
		}
		return err
	})
	if err != nil || !wanted {
		return err
	}
	value := `"true"`
	if on {
		value = "null"
	}
	patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"nodeSelector":{%q:%s}}}}}`, kubeProxyOff, value)
	err = j.retry(ctx, "switch kube-proxy", func(ctx context.Context) error {
		_, err := sets.Patch(ctx, "kube-proxy", mergePatch, []byte(patch), metav1.PatchOptions{FieldManager: manager})
		return err
	})
	if err != nil || on {
		return err
	}
	err = j.retry(ctx, "wait until kube-proxy is off", func(ctx context.Context) error {
		ds, err := sets.Get(ctx, "kube-proxy", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if ds.Status.ObservedGeneration < ds.Generation || ds.Status.CurrentNumberScheduled > 0 {
			return fmt.Errorf("%d of its pods still exist", ds.Status.CurrentNumberScheduled)
		}
		return nil
	})
	if err != nil {
		return err
	}
	rules := contender.Leftovers{Chains: kubeProxyChains, Tables: []string{"kube-proxy"}}
	_, err = j.askAll(ctx, node.Request{Do: node.DoClean, Leftovers: rules}, nil)
	return err
}

// checkKubeProxy returns an error if the recipe needs kube-proxy off, and kube-proxy runs
// and is not the DaemonSet that can be switched off.
func (j *job) checkKubeProxy(ctx context.Context, before *findings) error {
	if j.c.Kube.KubeProxy != "off" {
		return nil
	}
	_, err := j.cl.Client.AppsV1().DaemonSets("kube-system").Get(ctx, "kube-proxy", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(before.Nodes)) {
		if before.Nodes[name].KubeProxy {
			return newUnsupported("start the cluster without kube-proxy",
				"%s replaces kube-proxy, which runs on node %s, but not as the DaemonSet kube-system/kube-proxy, so that it can't be switched off from here", j.c.ID, name)
		}
	}
	return nil
}
