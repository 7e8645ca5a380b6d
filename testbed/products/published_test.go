//go:build linux

package products

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// tested are the sources of what the tests are about: those that are built with every
// change, or with CNIBENCH_TEST_PRODUCTS the others (make test-products).
func tested() []source {
	return slices.DeleteFunc(sources(), func(s source) bool { return s.apart != (os.Getenv("CNIBENCH_TEST_PRODUCTS") != "") })
}

// filesOf skips where the modules can't be had.
func filesOf(t *testing.T, s source) published {
	t.Helper()
	files, err := s.files(t.Context())
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("without the published module there is nothing to install: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Every product's objects are labelled, have the workloads that are waited for and
// name no image that is made nowhere here. kube-proxy is replaced where the product
// says so.
func TestPublishedObjects(t *testing.T) {
	here := cluster{pods: netip.MustParsePrefix("10.244.0.0/16"), api: netip.MustParseAddrPort("10.77.0.1:6443"), services: netip.MustParsePrefix("10.96.0.0/16")}
	for _, s := range tested() {
		for _, p := range s.products {
			t.Run(p.name, func(t *testing.T) {
				objects, err := filesOf(t, s).objects(p, here, "v1.34.4")
				if err != nil {
					t.Fatal(err)
				}
				checkObjects(t, s, p, objects)
			})
		}
	}
}

func checkObjects(t *testing.T, s source, p product, objects []byte) {
	t.Helper()
	var workloads []string
	decoder := yaml.NewDecoder(strings.NewReader(string(objects)))
	for {
		var object struct {
			Kind     string
			Metadata struct {
				Name   string
				Labels map[string]string
			}
			Data map[string]string
		}
		if decoder.Decode(&object) != nil {
			break
		}
		workloads = append(workloads, strings.ToLower(object.Kind)+"/"+object.Metadata.Name)
		if got := object.Metadata.Labels[productLabel]; got != p.name {
			t.Errorf("%s %s is labelled %q", object.Kind, object.Metadata.Name, got)
		}
		if got, there := object.Data["kube-proxy-replacement"]; there && got != strconv.FormatBool(!p.kubeProxy) {
			t.Errorf("kube-proxy replacement %s, and kube-proxy %v", got, p.kubeProxy)
		}
	}
	for _, w := range p.workloads {
		if !slices.Contains(workloads, w) {
			t.Errorf("no %s among %s", w, workloads)
		}
	}
	for document := range strings.SplitSeq(string(objects), "---\n") {
		if strings.Contains(document, "\nkind: ConfigMap\n") {
			continue // what may be started later, by who asks for it
		}
		for line := range strings.Lines(document) {
			name, value, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "- ")), ": ")
			value = strings.Trim(value, `"`)
			if name == "image" && !strings.HasPrefix(value, "localhost/") && !slices.Contains(s.named, value) {
				t.Errorf("%s is made nowhere here", value)
			}
		}
	}
}

// A mirror holds what its index says, and Helm can read its charts. What was not
// changed has the digest that cnibench's recipe pins.
func TestMirror(t *testing.T) {
	var names []string
	var wantCharts, wantManifests int
	for _, s := range tested() {
		files := filesOf(t, s)
		if files.Chart != nil {
			wantCharts++
		}
		wantManifests += len(files.manifests)
		for _, p := range s.products {
			names = append(names, p.name)
		}
	}
	dir := t.TempDir()
	if err := Mirror(t.Context(), dir, names, t.Logf); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "mirror.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var index mirrorIndex
	if err := yaml.Unmarshal(content, &index); err != nil {
		t.Fatal(err)
	}
	var charts, manifests int
	for _, f := range index.Files {
		if len(f.SHA256) != 64 {
			t.Errorf("%+v", f)
		}
		if f.Chart == nil {
			manifests++
			if len(f.Changed) == 0 && !pinned(t, f.SHA256) {
				t.Errorf("no recipe pins %s with its digest %s", f.URL, f.SHA256)
			}
			continue
		}
		charts++
		c, err := loader.Load(filepath.Join(dir, f.Path))
		if err != nil {
			t.Fatal(err)
		}
		if c.Metadata.Version != f.Chart.Version || len(f.Changed) == 0 {
			t.Errorf("%s holds version %s; %d changes", f.Path, c.Metadata.Version, len(f.Changed))
		}
	}
	if charts != wantCharts || manifests != wantManifests || charts+manifests == 0 {
		t.Errorf("%d of %d charts, %d of %d manifests", charts, wantCharts, manifests, wantManifests)
	}
}

// pinned is whether a recipe of cnibench's catalogue has the digest.
func pinned(t *testing.T, digest string) bool {
	t.Helper()
	files, err := filepath.Glob("../../contenders/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no catalogue: %v", err)
	}
	return slices.ContainsFunc(files, func(name string) bool {
		content, err := os.ReadFile(name)
		return err == nil && strings.Contains(string(content), digest)
	})
}
