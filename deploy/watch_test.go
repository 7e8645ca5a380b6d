package deploy

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// TestWatchRenders: the chart's watch replaces its Job, has rights in its namespace alone but for
// the list of nodes, and its parts find each other.
func TestWatchRenders(t *testing.T) {
	files := render(t, map[string]any{"image": "registry.example/cnibench:1", "watch": map[string]any{
		"enabled": true, "every": "1m", "bandwidth": true, "hostNetwork": true, "networkPolicy": true, "prometheusRule": true, "dashboard": true,
	}})
	for _, name := range []string{"job.yaml", "rbac.yaml"} {
		if strings.TrimSpace(files[name]) != "" {
			t.Errorf("%s is rendered beside the watch", name)
		}
	}
	if !strings.Contains(files["NOTES.txt"], "deployment/cnibench-watch") {
		t.Errorf("notes: %s", files["NOTES.txt"])
	}
	kinds := map[string]int{}
	var probes []appsv1.DaemonSet
	var watch appsv1.Deployment
	var role rbacv1.Role
	var everywhere rbacv1.ClusterRole
	var policy networkingv1.NetworkPolicy
	var board corev1.ConfigMap
	for _, document := range strings.Split(files["watch.yaml"], "\n---\n") {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			t.Fatalf("%v:\n%s", err, document)
		}
		kinds[kind.Kind]++
		switch kind.Kind {
		case "DaemonSet":
			var d appsv1.DaemonSet
			read(t, document, &d)
			probes = append(probes, d)
		case "Deployment":
			read(t, document, &watch)
		case "Role":
			read(t, document, &role)
		case "ClusterRole":
			read(t, document, &everywhere)
		case "NetworkPolicy":
			read(t, document, &policy)
		case "ConfigMap":
			read(t, document, &board)
		}
	}
	want := map[string]int{"DaemonSet": 2, "Deployment": 1, "ServiceAccount": 1, "Role": 1, "RoleBinding": 1, "ClusterRole": 1, "ClusterRoleBinding": 1, "NetworkPolicy": 1, "PrometheusRule": 1, "ConfigMap": 1}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Fatal(diff)
	}
	if diff := cmp.Diff([]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}}}, everywhere.Rules); diff != "" {
		t.Errorf("rights everywhere:\n%s", diff)
	}
	for _, r := range role.Rules {
		if slices.Contains(r.Verbs, "*") || slices.Contains(r.Verbs, "delete") || slices.Contains(r.Resources, "secrets") {
			t.Errorf("rights in the namespace: %+v", r)
		}
	}
	args := []string{
		"mesh", "--watch", "--arena=kube", "--namespace=cnibench", "--probe-pods=app.kubernetes.io/instance=cnibench,app.kubernetes.io/component=probe",
		"--every=1m", "--bandwidth", "--metrics-listen=:9464",
	}
	if diff := cmp.Diff(args, watch.Spec.Template.Spec.Containers[0].Args); diff != "" {
		t.Error(diff)
	}
	_, text, _ := strings.Cut(args[4], "=")
	selector, err := labels.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	host := 0
	for _, d := range probes {
		pod := d.Spec.Template
		if !selector.Matches(labels.Set(pod.Labels)) || !labels.SelectorFromSet(d.Spec.Selector.MatchLabels).Matches(labels.Set(pod.Labels)) ||
			!labels.SelectorFromSet(policy.Spec.PodSelector.MatchLabels).Matches(labels.Set(pod.Labels)) {
			t.Errorf("%s: labels %v", d.Name, pod.Labels)
		}
		if pod.Spec.HostNetwork {
			host++
		}
		// The watch runs commands in the container main, and the agent keeps files in /run/cnibench.
		c := pod.Spec.Containers[0]
		if c.Name != "main" || len(c.Resources.Limits) != 2 || c.VolumeMounts[0].MountPath != "/run/cnibench" || *pod.Spec.AutomountServiceAccountToken {
			t.Errorf("%s: %+v", d.Name, c)
		}
	}
	if host != 1 {
		t.Errorf("%d of the DaemonSets are in the host network", host)
	}
	if selector.Matches(labels.Set(watch.Spec.Template.Labels)) {
		t.Error("the watching pod is a probe, too")
	}
	if !json.Valid([]byte(board.Data["cnibench-watch.json"])) {
		t.Error("the dashboard is no JSON")
	}
	plain := render(t, nil)
	if strings.TrimSpace(plain["watch.yaml"]) != "" {
		t.Error("the watch is rendered unasked")
	}
	rules, err := os.ReadFile("chart/files/watch-rules.yaml")
	if err != nil || !strings.Contains(files["watch.yaml"], "alert: CnibenchPlaceSlow") || !strings.Contains(string(rules), "alert: CnibenchPlaceSlow") {
		t.Errorf("the rules are not the chart's: %v", err)
	}
}
