package install

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cnibench/cnibench/internal/contender"
)

// A kube-proxy that was switched off is switched on again, though the recipe of today's version
// does not want it off any more; one that was not is left alone.
func TestSwitchKubeProxyOn(t *testing.T) {
	for name, selector := range map[string]map[string]string{
		"was switched off": {kubeProxyOff: "true", "kubernetes.io/os": "linux"},
		"runs":             {"kubernetes.io/os": "linux"},
	} {
		t.Run(name, func(t *testing.T) {
			ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-proxy"}}
			ds.Spec.Template.Spec.NodeSelector = selector
			b := newBed([]runtime.Object{ds})
			if err := newJob(t, b, contender.Leftovers{}, nil).switchKubeProxy(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			got, err := b.client.AppsV1().DaemonSets("kube-system").Get(t.Context(), "kube-proxy", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if now := got.Spec.Template.Spec.NodeSelector; len(now) != 1 || now["kubernetes.io/os"] != "linux" {
				t.Errorf("its nodes: %v", now)
			}
			patches := 0
			for _, a := range b.client.Actions() {
				if a.GetVerb() == "patch" {
					patches++
				}
			}
			if patches != len(selector)-1 {
				t.Errorf("%d patches", patches)
			}
		})
	}
}
