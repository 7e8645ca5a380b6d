package build

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// write makes files in a fresh folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestPrograms(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := write(t, map[string]string{
		"go.mod":    "module example.org/x\n\ngo 1.21\n",
		"go.sum":    "",
		"a/main.go": "package main\n\nvar version = \"none\"\n\nfunc main() { print(version) }\n",
		"b/main.go": "package main\n\nfunc main() {}\n",
	})
	var said []string
	logf := func(format string, _ ...any) { said = append(said, format) }
	s := Source{Dir: dir, Version: "v1", Packages: []string{"./a", "./b"}, Flags: []string{"-ldflags", "-X main.version=v7"}}
	folder, err := Programs(t.Context(), s, logf)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(filepath.Join(folder, "a")).CombinedOutput(); err != nil || string(out) != "v7" {
		t.Errorf("a: %q %v", out, err)
	}
	if _, err := os.Stat(filepath.Join(folder, "b")); err != nil {
		t.Error(err)
	}

	said = nil
	again, err := Programs(t.Context(), s, logf)
	if err != nil || again != folder || len(said) > 0 {
		t.Errorf("the second time: %s %v, said %q", again, err, said)
	}
	s.Env = []string{"CNIBENCH_TEST=other"}
	if other, err := Programs(t.Context(), s, logf); err != nil || other == folder {
		t.Errorf("with another environment: %s %v", other, err)
	}

	s.Packages, s.Names = []string{"./a"}, []string{"first", "second"}
	if named, err := Programs(t.Context(), s, logf); err != nil {
		t.Error(err)
	} else if out, err := exec.Command(filepath.Join(named, "second")).CombinedOutput(); err != nil || string(out) != "v7" {
		t.Errorf("by its second name: %q %v", out, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a", "main.go"), []byte("package main\n\nfunc main() { print(\"new\") }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if changed, err := Programs(t.Context(), s, logf); err != nil {
		t.Error(err)
	} else if out, err := exec.Command(filepath.Join(changed, "first")).CombinedOutput(); err != nil || string(out) != "new" {
		t.Errorf("after its source has changed: %q %v", out, err)
	}
	s.Packages, s.Names = []string{"./none"}, nil
	if _, err := Programs(t.Context(), s, logf); err == nil || !strings.Contains(err.Error(), "go build") {
		t.Errorf("a package that is not there: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(folder), "*.building"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

func TestSourceDir(t *testing.T) {
	dir := write(t, map[string]string{"testbed/kubernetes/go.mod": "", "internal/x/y": ""})
	want, err := filepath.EvalSymlinks(filepath.Join(dir, "testbed", "kubernetes"))
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{".", "testbed", "internal/x"} {
		t.Chdir(filepath.Join(dir, from))
		if got, err := SourceDir("kubernetes"); err != nil || got != want {
			t.Errorf("from %s: %s %v", from, got, err)
		}
	}
	if _, err := SourceDir("none"); err == nil || !strings.Contains(err.Error(), "testbed/none") {
		t.Errorf("error %v", err)
	}
}
