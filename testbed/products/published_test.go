//go:build linux

package products

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// published skips where the modules can't be had.
func published(t *testing.T, s source) chartFiles {
	t.Helper()
	files, err := s.chart(t.Context())
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("without the published module there is no chart: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The published charts can be rendered for every product, and no image is left
// that nobody makes here.
func TestPublishedCharts(t *testing.T) {
	here := cluster{pods: netip.MustParsePrefix("10.244.0.0/16"), api: netip.MustParseAddrPort("10.77.0.1:6443")}
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) {
			objects, err := render(published(t, p.source).Chart, p.name, p.namespace, "v1.34.4", p.values(here))
			if err != nil {
				t.Fatal(err)
			}
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
				if object.Metadata.Name == "cilium-config" {
					if got, want := object.Data["kube-proxy-replacement"], map[bool]string{true: "false", false: "true"}[p.kubeProxy]; got != want {
						t.Errorf("kube-proxy replacement %s, want %s", got, want)
					}
				}
			}
			for _, w := range p.workloads {
				if !slices.Contains(workloads, w) {
					t.Errorf("no %s among %s", w, workloads)
				}
			}
			for _, line := range strings.Split(string(objects), "\n") {
				name, value, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "- ")), ": ")
				if name == "image" && !strings.HasPrefix(strings.Trim(value, `"`), "localhost/") {
					t.Errorf("%s is made nowhere here", value)
				}
			}
		})
	}
}

// A mirror holds what its index says, and Helm can read its charts.
func TestMirror(t *testing.T) {
	published(t, flannel)
	published(t, cilium)
	dir := t.TempDir()
	if err := Mirror(t.Context(), dir, t.Logf); err != nil {
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
	var charts, manifests []string
	for _, f := range index.Files {
		if len(f.Changed) == 0 || len(f.SHA256) != 64 {
			t.Errorf("%+v", f)
		}
		path := filepath.Join(dir, f.Path)
		if f.Chart == nil {
			manifests = append(manifests, f.Path)
			continue
		}
		c, err := loader.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if c.Metadata.Version != f.Chart.Version {
			t.Errorf("%s holds version %s", f.Path, c.Metadata.Version)
		}
		charts = append(charts, c.Name())
	}
	if !slices.Equal(charts, []string{"flannel", "cilium"}) || len(manifests) != 1 {
		t.Errorf("charts %s, manifests %s", charts, manifests)
	}
}
