package install

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	discoveryfake "k8s.io/client-go/discovery/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/cnibench/cnibench/internal/contender"
)

// hookedChart has all that Helm treats apart: definitions, hooks with weights and
// policies, an object to keep, values, and questions about the cluster.
var hookedChart = map[string]string{
	"Chart.yaml":  "apiVersion: v2\nname: x\nversion: 1.0.0\nkubeVersion: \">=1.30.0-0\"\n",
	"values.yaml": "size: 1\n",
	"crds/widget.yaml": `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.x.example},
  spec: {group: x.example, names: {plural: widgets}, versions: [{name: v1, storage: true}]},
  status: {conditions: [{type: Established, status: "True"}]}}`,
	"templates/NOTES.txt":   "never applied",
	"templates/_help.tpl":   `{{ define "name" }}{{ .Release.Name }}-{{ .Release.Namespace }}{{ end }}`,
	"templates/b-job.yaml":  hook("post-install", "job", "hook-succeeded", 0),
	"templates/c-pre.yaml":  hook("pre-install", "second", "", 2) + "\n---\n" + hook("pre-install", "first", "", -1),
	"templates/d-end.yaml":  hook("pre-delete", "before-end", "hook-succeeded", 0) + "\n---\n" + hook("post-delete", "after-end", "", 0),
	"templates/e-test.yaml": hook("test", "never", "", 0),
	"templates/f.yaml": `{{ if .Capabilities.APIVersions.Has "x.example/v1/Widget" }}
{apiVersion: x.example/v1, kind: Widget, metadata: {name: {{ include "name" . }}}, spec: {size: {{ .Values.size }}, version: {{ .Capabilities.KubeVersion.Version }}}}
{{ end }}
---
{apiVersion: x.example/v1, kind: Widget, metadata: {name: keep, annotations: {helm.sh/resource-policy: keep}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: made}}
`,
}

func hook(event, name, policy string, weight int) string {
	if policy != "" {
		policy = ", helm.sh/hook-delete-policy: " + policy
	}
	return strings.NewReplacer("EVENT", event, "NAME", name, "POLICY", policy, "WEIGHT", string(rune('0'+max(weight, 0)))).Replace(
		`{apiVersion: batch/v1, kind: Job, metadata: {name: NAME, annotations: {helm.sh/hook: EVENT, helm.sh/hook-weight: "WEIGHT"POLICY}},
  status: {conditions: [{type: Complete, status: "True"}]}}`)
}

func chartJob(t *testing.T, files map[string]string, objects ...runtime.Object) (*bed, *job, *contender.Chart) {
	t.Helper()
	b := newBed([]runtime.Object{nodeOf("a", "10.0.0.1", "10.7.0.0/24", nil), namespace(ownNamespace, ourLabels)}, objects...)
	server := b.client.Discovery().(*discoveryfake.FakeDiscovery)
	server.FakedServerVersion = &version.Info{GitVersion: "v1.34.4", Major: "1", Minor: "34"}
	server.Resources = []*metav1.APIResourceList{{GroupVersion: "x.example/v1", APIResources: []metav1.APIResource{{Kind: "Widget"}}}}
	dir := t.TempDir()
	inChart := map[string]string{}
	for name, text := range files {
		inChart["x-1.0.0/"+name] = text
	}
	write(t, dir, inChart)
	c := &contender.Chart{Name: "x", Release: "rel", Namespace: "ns", Values: map[string]any{"size": "${version}"}}
	p := product(contender.Leftovers{})
	p.Kube.Versions[contender.VersionSets()[0]] = contender.KubeVersion{Version: "1.0.0"}
	p.Kube.Steps = []contender.Step{{Chart: c}}
	j, err := newInstaller(t, Options{Mirror: dir}).job(b.Cluster, p)
	if err != nil {
		t.Fatal(err)
	}
	j.before = &findings{}
	if err := errors.Join(j.lock(t.Context()), j.gather(t.Context())); err != nil {
		t.Fatal(err)
	}
	return b, j, c
}

// A chart is installed and uninstalled as Helm does; what Helm leaves of
// definitions and hooks goes, too. Another process needs the journal only.
func TestChart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, j, c := chartJob(t, hookedChart)
		if err := (chartStep{c}).do(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		want := []string{"widgets.x.example", "ns/first", "ns/second", "made", "ns/rel-ns", "ns/keep", "ns/job"}
		if diff := cmp.Diff(want, b.created()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"jobs job"}, b.deleted()); diff != "" {
			t.Error(diff)
		}
		w, err := b.dynamic.Resource(schema.GroupVersionResource{Group: "x.example", Version: "v1", Resource: "widgets"}).
			Namespace("ns").Get(t.Context(), "rel-ns", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]any{"size": "1.0.0", "version": "v1.34.4"}, w.Object["spec"]); diff != "" {
			t.Error(diff)
		}
		left, err := j.loadJournal(t.Context(), b.Cluster)
		if err != nil {
			t.Fatal(err)
		}
		second, err := newInstaller(t, Options{}).fromJournal(b.Cluster, j.c, left)
		if err != nil {
			t.Fatal(err)
		}
		b.dynamic.ClearActions()
		if err := second.steps[0].undo(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"ns/before-end", "ns/after-end"}, b.created()); diff != "" {
			t.Error(diff)
		}
		gone := []string{
			"jobs before-end", "namespaces made", "widgets rel-ns",
			"jobs second", "jobs first", "jobs after-end", "customresourcedefinitions widgets.x.example",
		}
		if diff := cmp.Diff(gone, b.deleted()); diff != "" {
			t.Error(diff)
		}
	})
}

// A hook after the deletion takes off the finalizer that holds an object of the chart.
func TestChartHookReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, j, c := chartJob(t, hookedChart)
		if err := (chartStep{c}).do(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		released := false
		b.dynamic.PrependReactor("create", "jobs", func(a ktesting.Action) (bool, runtime.Object, error) {
			released = released || a.(ktesting.CreateAction).GetObject().(*unstructured.Unstructured).GetName() == "after-end"
			return false, nil, nil
		})
		b.dynamic.PrependReactor("delete", "widgets", func(ktesting.Action) (bool, runtime.Object, error) {
			return !released, nil, nil // held until then
		})
		if err := j.steps[0].undo(t.Context(), j); err != nil {
			t.Error(err)
		}
	})
}

// What the cluster had before the installation is neither changed nor deleted.
func TestChartRefused(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change map[string]string
		there  runtime.Object
		want   string
	}{
		{"object exists", nil, object("x.example/v1", "Widget", "ns", "keep"), "Widget ns/keep exists already"},
		{"cluster is too old", map[string]string{"Chart.yaml": "apiVersion: v2\nname: x\nversion: 1.0.0\nkubeVersion: \">=1.99.0-0\"\n"}, nil, "supports Kubernetes >=1.99.0-0, and the cluster runs v1.34.4"},
		{"unknown kind", map[string]string{"templates/g.yaml": "{apiVersion: y/v1, kind: Gadget, metadata: {name: g}}"}, nil, "find the kind of Gadget g"},
		{"hook fails", map[string]string{"templates/c-pre.yaml": strings.Replace(hook("pre-install", "p", "hook-failed", 0), "Complete", "Failed", 1)}, nil, "Job ns/p failed"},
		{"template fails", map[string]string{"templates/g.yaml": `{{ required "give a size" .Values.none }}`}, nil, "give a size"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				files := maps.Clone(hookedChart)
				maps.Copy(files, tt.change)
				var objects []runtime.Object
				if tt.there != nil {
					objects = append(objects, tt.there)
				}
				b, j, c := chartJob(t, files, objects...)
				wantError(t, (chartStep{c}).do(t.Context(), j), tt.want)
				made := strings.Join(b.created(), " ")
				if strings.Contains(made, "ns/rel-ns") {
					t.Errorf("created %s", made)
				}
				if err := j.steps[0].undo(t.Context(), j); err != nil {
					t.Fatal(err)
				}
				if deleted := strings.Join(b.deleted(), " "); strings.Contains(deleted, "keep") {
					t.Errorf("deleted %s", deleted)
				}
			})
		})
	}
}
