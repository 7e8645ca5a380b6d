//go:build linux

package products

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (go test -update writes it anew), -want +got:\n%s", path, diff)
	}
}

func TestRender(t *testing.T) {
	c, err := loadChart("testdata/chart", []change{
		{"image.repository", "localhost/example", "made here"},
		{"capabilities", []string{"NET_ADMIN"}, "no more is needed"},
	})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := render(c, "example-b", "somewhere", "v1.34.4", map[string]any{"image": map[string]any{"tag": "v2"}})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "rendered.yaml", append(namespaceYAML("somewhere", "example-b"), objects...))
}

func TestChangeDefaults(t *testing.T) {
	values, err := os.ReadFile("testdata/chart/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	changed, err := changeDefaults(values, []change{{"replicas", 1, "one machine"}, {"image.repository", "localhost/example", "made here"}})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "changed.yaml", changed)

	for _, path := range []string{"image.name", "replicas.count", "tag"} {
		if _, err := changeDefaults(values, []change{{path, "x", ""}}); err == nil || !strings.Contains(err.Error(), "has no "+path) {
			t.Errorf("changing %s, which is not there: %v", path, err)
		}
	}
}

func TestSlowDown(t *testing.T) {
	const deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: x
spec:
  template:
    spec:
      containers:
        - livenessProbe:
            failureThreshold: 2
          startupProbe:
            timeoutSeconds: 4
`
	slow, err := editObjects([]byte(deployment), func(object map[string]any) error {
		slowDown(object, 10)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(
		"spec:\n  template", "spec:\n  progressDeadlineSeconds: 6000\n  template",
		"failureThreshold: 2\n", "failureThreshold: 2\n            initialDelaySeconds: 0\n            periodSeconds: 100\n            timeoutSeconds: 10\n",
		"timeoutSeconds: 4\n", "periodSeconds: 100\n            timeoutSeconds: 40\n",
	).Replace(deployment)
	if diff := cmp.Diff(want, string(slow)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestEdited(t *testing.T) {
	files := published{manifests: []manifest{{url: "https://example.org/a/b.yaml", content: []byte("image: x\n---\nimage: x\n")}}}
	got, err := files.edited("b.yaml", []edit{{"image: x", "image: y"}})
	if err != nil || string(got) != "image: y\n---\nimage: y\n" {
		t.Errorf("%q, %v", got, err)
	}
	for name, edits := range map[string][]edit{"b.yaml": {{"image: z", ""}}, "c.yaml": nil} {
		if _, err := files.edited(name, edits); err == nil {
			t.Errorf("%s, %v: no error", name, edits)
		}
	}
}

func TestFind(t *testing.T) {
	for _, name := range Names() {
		if _, p, err := find(name); err != nil || p.name != name || p.wire == "" {
			t.Errorf("%s: %v, carried between nodes by %q, %v", name, p.name, p.wire, err)
		}
	}
	if _, _, err := find("cillium"); err == nil || !strings.Contains(err.Error(), "cilium-native") {
		t.Errorf("unknown name: %v, wanted the names that there are", err)
	}
}

func TestReplaceOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "modules.go")
	if err := os.WriteFile(path, []byte(`a = "/proc/modules"`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := replaceOnce(path, "/proc/modules", "/etc/modules"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != `a = "/etc/modules"` {
		t.Errorf("%s, %v", got, err)
	}
	if err := replaceOnce(path, "/proc/modules", "x"); err == nil {
		t.Error("replaced what is not there")
	}
}

func TestKernelModules(t *testing.T) {
	for _, line := range strings.Split(strings.TrimSpace(kernelModules("vxlan", "cls_bpf")), "\n") {
		if fields := strings.Fields(line); len(fields) < 6 {
			t.Errorf("%q has %d fields; /proc/modules has six", line, len(fields))
		}
	}
}
