package install

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// comparedKinds are the kinds whose objects must be the same before an installation and
// after its removal. Leases and events change by themselves.
var comparedKinds = []struct {
	kind      string
	gvr       schema.GroupVersionResource
	namespace string // "": all namespaces
}{
	{"Namespace", schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, ""},
	{"CustomResourceDefinition", schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, ""},
	{"ClusterRole", schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}, ""},
	{"ClusterRoleBinding", schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}, ""},
	{"MutatingWebhookConfiguration", schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}, ""},
	{"ValidatingWebhookConfiguration", schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}, ""},
	{"APIService", schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}, ""},
	{"IngressClass", schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingressclasses"}, ""},
	{"DaemonSet", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}, ""},
	{"Deployment", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, ""},
	{"StatefulSet", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}, ""},
	{"Service", schema.GroupVersionResource{Version: "v1", Resource: "services"}, ""},
	{"ConfigMap", schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "kube-system"},
	{"Secret", schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, "kube-system"},
	{"ServiceAccount", schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, "kube-system"},
}

// clusterState lists what an installation could leave in the cluster.
func (j *job) clusterState(ctx context.Context) ([]string, error) {
	var things []string
	own := map[string]bool{}
	for _, k := range comparedKinds {
		list, err := fetch(ctx, j.patience, "list "+k.gvr.Resource, func(ctx context.Context) (*unstructured.UnstructuredList, error) {
			return j.cl.Dynamic.Resource(k.gvr).Namespace(k.namespace).List(ctx, metav1.ListOptions{})
		})
		if err != nil {
			return nil, err
		}
		for _, o := range list.Items {
			if k.kind == "Namespace" && isOwn(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.GetName(), Labels: o.GetLabels()}}) {
				own[o.GetName()] = true
			}
			if own[o.GetName()] && k.kind == "Namespace" || own[o.GetNamespace()] || o.GetDeletionTimestamp() != nil || o.GetLabels()["app.kubernetes.io/managed-by"] == "cnibench" {
				continue
			}
			o.SetKind(k.kind)
			things = append(things, textOf(&o))
		}
	}
	nodes, err := j.facts.list(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		for _, key := range marksOf(&n) {
			things = append(things, markText(key, n.Name))
		}
	}
	slices.Sort(things)
	return things, nil
}

// markText names a mark of a node: key is one that marksOf returns.
func markText(key, node string) string { return "mark " + key + " of node " + node }

// existedBefore reports whether the cluster had a thing before the installation, by the
// name that clusterState gives the thing.
func (j *job) existedBefore(thing string) bool {
	return j.before != nil && slices.Contains(j.before.Cluster, thing)
}

// ignoredMarks are prefixes of marks that Kubernetes and this program set and clear.
var ignoredMarks = []string{"node.kubernetes.io/", "cnibench.io/"}

// noNetwork is the mark of a node that says of itself that it has no network, for which
// Kubernetes taints it.
const noNetwork = "condition NetworkUnavailable"

// marksOf returns the keys of a node's marks: its labels, annotations and taints, and noNetwork.
func marksOf(n *corev1.Node) []string {
	var keys []string
	for key := range n.Labels {
		keys = append(keys, "label "+key)
	}
	for key := range n.Annotations {
		keys = append(keys, "annotation "+key)
	}
	for _, t := range n.Spec.Taints {
		keys = append(keys, "taint "+t.Key)
	}
	if slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeNetworkUnavailable && c.Status == corev1.ConditionTrue
	}) {
		keys = append(keys, noNetwork)
	}
	return slices.DeleteFunc(keys, func(key string) bool {
		_, name, _ := strings.Cut(key, " ")
		return startsWith(name, ignoredMarks)
	})
}

func startsWith(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// cleanObjects deletes what the product itself made in the cluster: its definitions with
// all their objects, its namespaces, its marks on nodes. It keeps what existed before the
// installation.
func (j *job) cleanObjects(ctx context.Context) error {
	l := j.c.Kube.Leftovers
	if len(l.CRDs) > 0 {
		crds, err := fetch(ctx, j.patience, "list definitions", func(ctx context.Context) (*unstructured.UnstructuredList, error) {
			return j.cl.Dynamic.Resource(crdResource).List(ctx, metav1.ListOptions{})
		})
		if err != nil {
			return err
		}
		for _, crd := range crds.Items {
			o := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", crd.GetName())
			group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
			if !slices.Contains(l.CRDs, group) || j.existedBefore(textOf(o)) {
				continue
			}
			if err := j.releaseAll(ctx, crd.GetName()); err != nil {
				return err
			}
			if err := j.deleteObject(ctx, o); err != nil {
				return err
			}
		}
	}
	for _, name := range l.Namespaces {
		if err := j.deleteNew(ctx, object("v1", "Namespace", "", name)); err != nil {
			return err
		}
	}
	if err := j.cleanNoNetwork(ctx); err != nil {
		return err
	}
	return j.cleanMarks(ctx, l.NodeAnnotations)
}

// cleanNoNetwork takes back that a node has no network. Calico's agent says so when it
// ends in order (node/pkg/lifecycle/shutdown), and only its next start takes it back:
// until then the node gets no pods.
func (j *job) cleanNoNetwork(ctx context.Context) error {
	nodes, err := j.facts.list(ctx)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if !slices.Contains(marksOf(&n), noNetwork) || j.existedBefore(markText(noNetwork, n.Name)) {
			continue
		}
		err := j.retry(ctx, "change node "+n.Name, func(ctx context.Context) error {
			patch := []byte(`{"status":{"conditions":[{"type":"NetworkUnavailable","$patch":"delete"}]}}`)
			_, err := j.cl.Client.CoreV1().Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: manager}, "status")
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// findStoredVersion returns the resource of a definition, in the version that is stored.
func findStoredVersion(crd *unstructured.Unstructured) (schema.GroupVersionResource, bool) {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		version, ok := v.(map[string]any)
		if ok && version["storage"] == true {
			name, _ := version["name"].(string)
			return schema.GroupVersionResource{Group: group, Version: name, Resource: plural}, true
		}
	}
	return schema.GroupVersionResource{}, false
}

// cleanMarks removes the labels, annotations and taints with the prefixes that did not
// exist before the installation.
func (j *job) cleanMarks(ctx context.Context, prefixes []string) error {
	if len(prefixes) == 0 {
		return nil
	}
	nodes, err := j.facts.list(ctx)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		remove := func(kind, key string) bool {
			return startsWith(key, prefixes) && !j.existedBefore(markText(kind+" "+key, n.Name))
		}
		labels, annotations, taints := map[string]any{}, map[string]any{}, []corev1.Taint{}
		for key := range n.Labels {
			if remove("label", key) {
				labels[key] = nil
			}
		}
		for key := range n.Annotations {
			if remove("annotation", key) {
				annotations[key] = nil
			}
		}
		for _, t := range n.Spec.Taints {
			if !remove("taint", t.Key) {
				taints = append(taints, t)
			}
		}
		patch := map[string]any{"metadata": map[string]any{"labels": labels, "annotations": annotations}}
		if len(taints) < len(n.Spec.Taints) {
			patch["spec"] = map[string]any{"taints": taints}
		}
		if err := j.patchNode(ctx, n.Name, patch); err != nil {
			return err
		}
	}
	return nil
}

// object returns an object with a name and nothing else.
func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}
