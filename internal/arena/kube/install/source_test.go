package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/contender"
)

// archive is a chart of one file besides its description.
func archive(t *testing.T, name, version string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for file, text := range map[string]string{
		"Chart.yaml":        fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\n", name, version),
		"templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
	} {
		if err := w.WriteHeader(&tar.Header{Name: name + "/" + file, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func sourceOf(t *testing.T, dir string) (*source, *[]string) {
	t.Helper()
	var said []string
	s, err := newSource(dir, func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) })
	if err != nil {
		t.Fatal(err)
	}
	return s, &said
}

func TestChartFromRepository(t *testing.T) {
	data := archive(t, "x", "1.0.0")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/charts/index.yaml":
			fmt.Fprint(w, "entries:\n  x:\n  - {version: 0.9.0, urls: [old.tgz]}\n  - {version: 1.0.0, urls: [files/x.tgz]}\n")
		case "/charts/files/x.tgz":
			w.Write(data)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	c := &contender.Chart{Repo: server.URL + "/charts", Name: "x"}
	for _, tt := range []struct{ name, version, pinned, want, said string }{
		{"pinned", "1.0.0", digest(data), "", ""},
		{"not pinned", "1.0.0", "", "is not pinned: its publisher names no digest", ""},
		{"another file", "1.0.0", strings.Repeat("0", 64), "it is not the file that the recipe names", ""},
		{"no such version", "2.0.0", "", "index.yaml does not list version 2.0.0", ""},
		{"not there", "0.9.0", "", "404 Not Found", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, said := sourceOf(t, "")
			ch, err := s.chart(context.Background(), c, tt.version, tt.pinned)
			wantError(t, err, tt.want)
			if tt.want == "" && ch.Metadata.Name != "x" {
				t.Errorf("got chart %s", ch.Metadata.Name)
			}
			if got := strings.Join(*said, "\n"); !strings.Contains(got, tt.said) {
				t.Errorf("said %q", got)
			}
		})
	}
}

// An unpinned file is installed when the user accepts it, and must be the same
// the next time.
func TestUnpinned(t *testing.T) {
	s, said := sourceOf(t, "")
	s.acceptUnpinned, s.digests = true, filepath.Join(t.TempDir(), "state", "unpinned.json")
	for _, tt := range []struct{ name, text, want string }{
		{"chart", "one", ""}, {"chart", "one", ""}, {"chart", "two", "it was replaced"}, {"manifest", "two", ""}, {"chart", "one", ""},
	} {
		wantError(t, s.verifyDigest(tt.name, []byte(tt.text), ""), tt.want)
	}
	if want := "chart is not pinned by a digest; it has sha256 " + digest([]byte("one")); (*said)[0] != want {
		t.Errorf("said %q, want %q", *said, want)
	}
	if diff := cmp.Diff(map[string]string{"chart": digest([]byte("one")), "manifest": digest([]byte("two"))}, s.unpinned); diff != "" {
		t.Error(diff)
	}
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Fatal(err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Fatalf("got %v, want an error with %q", err, want)
	}
}

func TestMirror(t *testing.T) {
	data := archive(t, "x", "2.0.0")
	const manifest = "apiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n"
	index := fmt.Sprintf(`note: made by a test
files:
  - path: x-2.0.0.tgz
    sha256: %s
    chart: {repository: "https://example.org/", name: x, version: 2.0.0}
    changed: [other images]
  - path: other.yaml
    sha256: %s
    url: https://example.org/m.yaml
  - path: broken.yaml
    sha256: %s
    url: https://example.org/broken.yaml
`, digest(data), digest([]byte(manifest)), digest(nil))
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"mirror.yaml": index, "x-2.0.0.tgz": string(data), "other.yaml": manifest, "broken.yaml": manifest,
		"example.com/a/b.yaml": manifest,
	})
	s, said := sourceOf(t, dir)
	ctx := context.Background()
	c := &contender.Chart{Repo: "https://example.org", Name: "x"}
	version, err := s.chartVersion(c, "1.0.0")
	if err != nil || version != "2.0.0" {
		t.Fatalf("got %s, %v; want the mirror's only version", version, err)
	}
	// The mirror's own digest counts, not the published one.
	if _, err := s.chart(ctx, c, version, strings.Repeat("0", 64)); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(*said, "\n"); !strings.Contains(got, "differs from the published file: other images") {
		t.Errorf("said %q", got)
	}
	if _, err := s.chartVersion(&contender.Chart{Repo: "https://example.org", Name: "y"}, "1.0.0"); err == nil {
		t.Error("has chart y")
	}
	for _, tt := range []struct{ name, url, pinned, want string }{
		{"by the index", "https://example.org/m.yaml", strings.Repeat("0", 64), ""},
		{"by the index, changed since", "https://example.org/broken.yaml", "", "it is not the file that the recipe names"},
		{"by its address", "https://example.com/a/b.yaml", digest([]byte(manifest)), ""},
		{"by its address, another", "https://example.com/a/b.yaml", digest(nil), "it is not the file that the recipe names"},
		{"missing", "https://example.com/c.yaml", "", "the mirror lacks example.com/c.yaml"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := s.manifest(ctx, tt.url, tt.pinned)
			wantError(t, err, tt.want)
		})
	}
}

func TestMirrorErrors(t *testing.T) {
	for _, tt := range []struct{ name, index, want string }{
		{"unknown key", "fils: []\n", `unknown field "fils"`},
		{"out of the folder", "files: [{path: ../x}]\n", "leads out of the folder"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, map[string]string{"mirror.yaml": tt.index})
			_, err := newSource(dir, t.Logf)
			wantError(t, err, tt.want)
		})
	}
	_, err := newSource(filepath.Join(t.TempDir(), "no"), t.Logf)
	wantError(t, err, "there is no such folder")
}
