// Package deploy holds what puts cnibench into a cluster: manifests and a Helm
// chart. The package has tests only, which keep them in step with the program.
package deploy

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/cnibench/cnibench/internal/arena/kube"
)

var update = flag.Bool("update", false, "write the files that follow from the program")

// rules are the ClusterRole's, as YAML.
func rules(t *testing.T) []byte {
	t.Helper()
	text, err := yaml.Marshal(kube.Rules(kube.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The files are what the program prints.
func TestRightsAreTheProgram(t *testing.T) {
	manifest, err := kube.RBAC(kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{"rbac.yaml": manifest, "chart/files/rules.yaml": rules(t)} {
		if *update {
			if err := os.WriteFile(name, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is not what `cnibench rbac` prints; write it with: go test ./deploy -update\n%s", name, diff)
		}
	}
}

func TestChartLints(t *testing.T) {
	for _, m := range lint.All("chart", nil, "cnibench", true).Messages {
		if m.Severity >= support.WarningSev {
			t.Error(m)
		}
	}
}

// The chart makes what the manifests say, with the values' changes.
func TestChartRenders(t *testing.T) {
	plain := render(t, nil)
	var job batchv1.Job
	read(t, plain["job.yaml"], &job)
	var manifest batchv1.Job
	b, err := os.ReadFile("job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	read(t, string(b), &manifest)
	if diff := cmp.Diff(manifest, job); diff != "" {
		t.Errorf("the chart's Job is not deploy/job.yaml's:\n%s", diff)
	}
	account, role, binding := corev1.ServiceAccount{}, rbacv1.ClusterRole{}, rbacv1.ClusterRoleBinding{}
	var theirs bytes.Buffer
	for i, object := range []any{&account, &role, &binding} {
		documents := strings.Split(plain["rbac.yaml"], "\n---\n")
		if len(documents) != 3 {
			t.Fatalf("%d documents:\n%s", len(documents), plain["rbac.yaml"])
		}
		read(t, documents[i], object)
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			theirs.WriteString("---\n")
		}
		theirs.Write(text)
	}
	want, err := kube.RBAC(kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want = want[bytes.Index(want, []byte("apiVersion")):] // below the comment
	if diff := cmp.Diff(string(want), theirs.String()); diff != "" {
		t.Errorf("the chart's rights are not those of `cnibench rbac`:\n%s", diff)
	}

	changed := render(t, map[string]any{
		"image": "registry.example/cnibench:1", "imagePullPolicy": "Never", "suite": "latency", "args": []any{"--rounds=3"},
		"resultsClaim": "mine", "holdSeconds": 600, "nodeSelector": map[string]any{"a": "b"}, "tolerations": []any{map[string]any{"operator": "Exists"}},
	})
	read(t, changed["job.yaml"], &job)
	spec := job.Spec.Template.Spec
	args := []string{"run", "--arena=kube", "--image=registry.example/cnibench:1", "--pull-policy=Never", "--suite=latency", "--out=/results/run", "--rounds=3"}
	if diff := cmp.Diff(args, spec.Containers[0].Args); diff != "" {
		t.Error(diff)
	}
	if claim := spec.Volumes[0].PersistentVolumeClaim; claim == nil || claim.ClaimName != "mine" {
		t.Errorf("volume %+v", spec.Volumes[0])
	}
	if spec.NodeSelector["a"] != "b" || len(spec.Tolerations) != 1 {
		t.Errorf("%v, %v", spec.NodeSelector, spec.Tolerations)
	}
}

// render is the chart's templates, by file, as release cnibench in namespace
// cnibench.
func render(t *testing.T, values map[string]any) map[string]string {
	t.Helper()
	c, err := loader.Load("chart")
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: "cnibench", Namespace: "cnibench"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(c, all)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		files[strings.TrimPrefix(name, "cnibench/templates/")] = text
	}
	return files
}

// read wants YAML whose keys are all known.
func read(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil && !errors.Is(err, io.EOF) {
		t.Fatalf("%v:\n%s", err, text)
	}
}
