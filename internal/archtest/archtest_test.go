package archtest

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestRules(t *testing.T) {
	broken, err := check(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range broken {
		t.Error(b)
	}
}

func TestEveryArenaHasItsRule(t *testing.T) {
	entries, err := os.ReadDir("../arena")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !slices.Contains(arenas, e.Name()) {
			t.Errorf("internal/arena/%s is not in the list of arenas in rules_test.go", e.Name())
		}
	}
}

func TestTopFoldersAreKnown(t *testing.T) {
	entries, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() || ours(e.Name()) || skipped(os.DirFS("../.."), e.Name()) {
			continue
		}
		if files, _ := os.ReadDir("../../" + e.Name()); slices.ContainsFunc(files, func(f os.DirEntry) bool { return strings.HasSuffix(f.Name(), ".go") }) {
			t.Errorf("%s holds Go files and is not in ours()", e.Name())
		}
	}
}

// The checker is worth nothing unless it finds each kind of violation.
func TestCheckFinds(t *testing.T) {
	source := func(body string) string { return "package x\n\n" + body + "\n" }
	imports := func(p string) string { return source(`import _ "` + p + `"`) }
	tests := map[string]struct {
		file, src string
		want      string // "" means nothing
	}{
		"analysis reads files":          {"internal/analysis/x.go", imports("os"), "internal/analysis/x.go:3: imports os: "},
		"analysis uses the network":     {"internal/analysis/x.go", imports("net/http"), "imports net/http"},
		"analysis knows reports":        {"internal/analysis/x.go", imports(module + "/internal/report"), "imports internal/report"},
		"analysis knows contenders":     {"internal/analysis/x.go", imports(module + "/contenders"), "imports contenders"},
		"analysis uses its own":         {"internal/analysis/x.go", imports(module + "/internal/stat"), ""},
		"analysis asks the clock":       {"internal/analysis/x.go", source("import \"time\"\n\nvar now = time.Now()"), ":5: uses time.Now"},
		"under another name":            {"internal/report/x.go", source("import clock \"time\"\n\nvar f = clock.Since"), "uses time.Since"},
		"a time is no clock":            {"internal/report/x.go", source("import \"time\"\n\nvar t time.Time"), ""},
		"a test may":                    {"internal/analysis/x_test.go", imports("os"), ""},
		"only for another system":       {"internal/report/x_windows.go", "//go:build windows\n\n" + imports("os/user"), "imports os/user"},
		"report computes":               {"internal/report/x.go", imports(module + "/internal/stat"), "imports internal/stat"},
		"result knows analysis":         {"internal/result/x.go", imports(module + "/internal/analysis"), "imports internal/analysis"},
		"unit uses a library":           {"internal/unit/x.go", imports("golang.org/x/perf/benchmath"), "imports golang.org/x/perf"},
		"stat uses a numeric one":       {"internal/stat/x.go", imports("golang.org/x/perf/benchmath"), ""},
		"stat uses another":             {"internal/stat/x.go", imports("github.com/spf13/cobra"), "imports github.com/spf13/cobra"},
		"load knows arenas":             {"internal/load/x.go", imports(module + "/internal/arena"), "imports internal/arena"},
		"bench chooses an arena":        {"internal/bench/x.go", imports(module + "/internal/arena/lab"), "imports internal/arena/lab"},
		"cli chooses an arena":          {"internal/cli/x.go", imports(module + "/internal/arena/lab"), "imports internal/arena/lab"},
		"arenas import each other":      {"internal/arena/guest/x.go", imports(module + "/internal/arena/lab/inner"), "imports internal/arena/lab/inner"},
		"an arena imports its own":      {"internal/arena/lab/x.go", imports(module + "/internal/arena/lab/inner"), ""},
		"a hidden interface":            {"internal/bench/x.go", source("func f(x any) { _, _ = x.(interface{ Fresh() error }) }"), ":3: asks a value for methods"},
		"a hidden one in a switch":      {"internal/bench/x.go", source("func f(x any) {\n\tswitch x.(type) {\n\tcase interface{ Fault() error }:\n\t}\n}"), ":5: asks a value for methods"},
		"a declared interface":          {"internal/bench/x.go", source("import \"io\"\n\nfunc f(x any) { _, _ = x.(io.ReaderAt) }"), ""},
		"commands elsewhere":            {"internal/workload/x.go", imports("os/exec"), "imports os/exec"},
		"commands in main":              {"x.go", imports("os/exec"), "x.go:3: imports os/exec"},
		"commands in host":              {"internal/host/x.go", imports("os/exec"), ""},
		"netlink elsewhere":             {"internal/arena/lab/x.go", imports("github.com/vishvananda/netlink"), "imports github.com/vishvananda/netlink"},
		"netlink in a file that may":    {"internal/arena/lab/probe_linux.go", imports("github.com/google/nftables/expr"), ""},
		"client-go elsewhere":           {"internal/bench/x.go", imports("k8s.io/client-go/rest"), "imports k8s.io/client-go/rest"},
		"Helm's installer":              {"internal/arena/kube/install/x.go", imports("helm.sh/helm/v3/pkg/action"), "imports helm.sh/helm/v3/pkg/action"},
		"Helm's renderer":               {"internal/arena/kube/install/x.go", imports("helm.sh/helm/v3/pkg/engine"), ""},
		"clients of all API groups":     {"internal/arena/kube/x.go", imports("k8s.io/client-go/kubernetes"), "imports k8s.io/client-go/kubernetes"},
		"client-go in its arena":        {"internal/arena/kube/x.go", imports("k8s.io/client-go/rest"), ""},
		"something depends on cli":      {"internal/bench/x.go", imports(module + "/internal/cli"), "imports internal/cli"},
		"main does":                     {"main.go", imports(module + "/internal/cli"), ""},
		"an init function":              {"internal/workload/x.go", source("func init() {}"), "internal/workload/x.go:3: has an init function"},
		"in a test too":                 {"internal/workload/x_test.go", source("func init() {}"), "has an init function"},
		"not in generated code":         {"internal/workload/x.go", "// Code generated by x. DO NOT EDIT.\n\n" + source("func init() {}"), ""},
		"a method of that name":         {"internal/workload/x.go", source("type t struct{}\n\nfunc (t) init() {}"), ""},
		"another module":                {"testbed/x.go", imports("os/exec"), ""},
		"test data":                     {"internal/x/testdata/x.go", imports("os/exec"), ""},
		"the test suites in a program":  {"internal/bench/x.go", imports(module + "/internal/testutil/arenatest"), "imports internal/testutil/arenatest"},
		"a folder with a common prefix": {"internal/hosts/x.go", imports("os/exec"), "imports os/exec"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			broken, err := check(fstest.MapFS{
				"testbed/go.mod": {Data: []byte("module other")},
				test.file:        {Data: []byte(test.src)},
			})
			if err != nil {
				t.Fatal(err)
			}
			if test.want == "" {
				if diff := cmp.Diff([]string(nil), broken); diff != "" {
					t.Error(diff)
				}
			} else if len(broken) != 1 || !strings.Contains(broken[0], test.want) {
				t.Errorf("%q, want %q", broken, test.want)
			}
		})
	}
	if _, err := check(fstest.MapFS{"x.go": {Data: []byte("packag x")}}); err == nil {
		t.Error("a file that does not parse is no error")
	}
}

// Reading, reporting, comparing and recommending need neither an arena nor a cluster's
// client: internal/report may import none of them, by the rules, and these files of cli use
// it alone.
func TestReadersKnowNoArena(t *testing.T) {
	for _, name := range []string{"report.go", "report_published.go", "report_openmetrics.go", "compare.go", "compare_run.go", "recommend.go", "explore.go"} {
		text, err := os.ReadFile("../cli/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, pkg := range []string{"internal/run\"", "internal/arena", "k8s.io/"} {
			if strings.Contains(string(text), pkg) {
				t.Errorf("internal/cli/%s imports %s", name, pkg)
			}
		}
	}
}
