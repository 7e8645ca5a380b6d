package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/result"
)

// use is something that only some packages and files do, each for its reason.
type use struct {
	what func(f *file, e ast.Expr) string // names it; "" is another expression
	why  string
	to   map[string]string // package or file, and its reason
}

var uses = []use{
	{
		what: wallClock,
		why:  "a time without its monotonic clock is no good for durations, deadlines and order: the clock may be set meanwhile; keep what time.Now returned, or say in this table what it is for",
		to: map[string]string{
			"internal/analysis/...":                  "times of a record, which it shows and compares with the same clock's to find that it was set",
			"internal/report/...":                    "times of a record are shown",
			"internal/result":                        "the time of a run's end is shown",
			"internal/importer":                      "times that others recorded",
			"internal/clocktest":                     "a clock that tests set",
			"tools/...":                              "programs for developers",
			"internal/sysmon/openmetrics.go":         "the format's times",
			"internal/sysmon/openmetrics_read.go":    "the format's times",
			"internal/sysmon/recorder.go":            "the wall clock of the start plus the monotonic clock",
			"internal/sysmon/windows.go":             "times of a recording, in an error",
			"internal/sysmon/window.go":              "times of a recording, in an error",
			"internal/load/engine_linux.go":          "the kernel stamps packets by the wall clock; where the two clocks part, the stamp is not used",
			"internal/load/first.go":                 "a deadline that is over",
			"internal/load/seconds.go":               "the format's times",
			"internal/agent":                         "a deadline that is over",
			"internal/transfer/certificate.go":       "a certificate is good at all times",
			"internal/bench/run.go":                  "the begin of a sample is shown; samples have an order of their own",
			"internal/run/measure.go":                "the begin of a run is shown",
			"internal/selftest/kept.go":              "the time of a self-test is shown",
			"internal/tune/apply.go":                 "the time of a change is shown",
			"internal/vm/run_linux.go":               "the guest's clock is set once, as it starts",
			"internal/cli/explore.go":                "the time of a file, which is another when the file is",
			"internal/cli/record_flags.go":           "a time that another program gives",
			"internal/contender/kube.go":             "a date is checked for its form",
			"internal/arena/kube/lease.go":           "a renewal is another when its time is: nobody compares the two clocks",
			"internal/arena/kube/namespace.go":       "the time of a namespace is shown",
			"internal/arena/kube/install/journal.go": "the time of an installation is shown",
		},
	},
	{
		what: plainFile,
		why:  "a file is replaced whole, or not at all, by internal/disk: on a full disk and after a power cut the old one is there; or say in this table why that is nothing here",
		to: map[string]string{
			"internal/agent":                     "a pod's sign of life, in memory",
			"internal/arena/kube/install/node":   "settings of a node's kernel, and a file that gets its old name back",
			"internal/cli/loadcmd/run.go":        "a log that others follow while it grows",
			"internal/cli/report_openmetrics.go": "a file without a name",
			"internal/ns":                        "settings of a network namespace",
			"internal/pagetest":                  "goldens of tests",
			"internal/wire/wiretest":             "goldens of tests",
			"internal/disk/disktest":             "a disk of tests",
			"internal/transfer/http3.go":         "what a client of a load receives",
			"internal/vm/init_mount_linux.go":    "a guest's cgroups",
			"internal/vm/find_linux.go":          "a kernel of the cache: synced before it gets its name",
			"internal/wire/tunnel/flanneld.go":   "in the lab, which goes with its files",
			"tools/...":                          "programs for developers",
		},
	},
	{
		what: narrowed,
		why:  "a value is asked for methods that its declared type does not promise: whoever wraps it loses them without notice; put them into its interface, or say in this table why they are no part of it",
		to: map[string]string{
			"internal/bench":             "what only some workloads can; nobody wraps a workload",
			"internal/suite":             "what only some workloads can; nobody wraps a workload",
			"internal/run/tunebench":     "what only some workloads can; nobody wraps a workload",
			"internal/record/command.go": "what this machine starts has a process ID; host says so",
		},
	},
	{
		what: metricList,
		why:  "a metric's row in internal/result says where it belongs: ask the catalogue for the metrics of a role or an aspect; or say in this table why the metrics are named here",
		to: map[string]string{
			"internal/workload":                     "what a workload measures",
			"internal/importer":                     "what a file of others holds",
			"internal/bench/figures.go":             "what the recorder measures",
			"internal/arena/kube/install/effort.go": "what an installation measures",
			"internal/analysis/analysistest":        "samples of tests",
		},
	},
}

// wallClock names what takes the monotonic clock from a time, or makes one without it.
func wallClock(f *file, e ast.Expr) string {
	if sel, ok := e.(*ast.SelectorExpr); ok && sel.Sel.Name == "CreationTimestamp" {
		return sel.Sel.Name
	}
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return ""
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	name := sel.Sel.Name
	if x, ok := sel.X.(*ast.Ident); ok && f.pathOf(x.Name) != "" {
		if f.pathOf(x.Name) == "time" && slices.Contains([]string{"Unix", "UnixMilli", "UnixMicro", "Parse", "ParseInLocation", "Date"}, name) {
			return "time." + name
		}
		return ""
	}
	if len(call.Args) == 0 && slices.Contains([]string{"UTC", "Local", "Unix", "UnixMilli", "UnixMicro", "UnixNano", "ModTime"}, name) {
		return name
	}
	if len(call.Args) == 1 && name == "Round" {
		if zero, ok := call.Args[0].(*ast.BasicLit); ok && zero.Value == "0" {
			return "Round(0)"
		}
	}
	return ""
}

// plainFile names what writes a file that a full disk or a power cut spoils.
func plainFile(f *file, e ast.Expr) string {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := sel.X.(*ast.Ident); ok {
		if name := f.pathOf(x.Name) + "." + sel.Sel.Name; slices.Contains([]string{"os.WriteFile", "os.Create", "os.CreateTemp", "os.Rename"}, name) {
			return name
		}
	}
	return ""
}

// narrowed names an interface of another package of ours that a value is asked for.
func narrowed(f *file, e ast.Expr) string {
	asked, ok := e.(*ast.TypeAssertExpr)
	if !ok {
		return ""
	}
	sel, ok := asked.Type.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := sel.X.(*ast.Ident); ok && interfaces()[f.pathOf(x.Name)+"."+sel.Sel.Name] {
		return x.Name + "." + sel.Sel.Name + " by assertion"
	}
	return ""
}

// interfaces are those that packages of ours declare, by folder and name.
var interfaces = sync.OnceValue(func() map[string]bool {
	declared := map[string]bool{}
	err := eachFile(os.DirFS("../.."), func(name string, src []byte) error {
		f, err := parseFile(name, src)
		if err != nil {
			return err
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if _, ok := spec.Type.(*ast.InterfaceType); ok {
					declared[f.pkg+"."+spec.Name.Name] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		panic(err)
	}
	return declared
})

// metricList names a list, or the keys of a table, of two metrics or more.
func metricList(f *file, e ast.Expr) string {
	list, ok := e.(*ast.CompositeLit)
	if !ok {
		return ""
	}
	metrics := 0
	for _, element := range list.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			element = pair.Key
		}
		name := ""
		switch x := element.(type) {
		case *ast.BasicLit:
			name, _ = strconv.Unquote(x.Value) // a number has no quotes
		case *ast.SelectorExpr:
			if of, ok := x.X.(*ast.Ident); ok && f.pathOf(of.Name) == "internal/result" {
				name = metricConstants()[x.Sel.Name]
			}
		}
		if _, ok := result.LookupMetric(name); ok {
			metrics++
		}
	}
	if metrics < 2 {
		return ""
	}
	return "a list of metrics"
}

// metricConstants are the values of package result's constants of text, by name.
var metricConstants = sync.OnceValue(func() map[string]string {
	values := map[string]string{}
	file, err := parser.ParseFile(token.NewFileSet(), "../result/metric.go", nil, 0)
	if err != nil {
		panic(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Names) == len(spec.Values) {
			for i, value := range spec.Values {
				if text, ok := value.(*ast.BasicLit); ok && text.Kind == token.STRING {
					values[spec.Names[i].Name] = strings.Trim(text.Value, `"`)
				}
			}
		}
		return true
	})
	return values
})

// check reports an expression that has no reason, and notes the reasons of one that has.
func (u use) check(f *file, e ast.Expr, needed map[string]bool) {
	what := u.what(f, e)
	if what == "" {
		return
	}
	known := false
	for where := range u.to {
		if where == f.name || matches(where, f.pkg) {
			known, needed[where] = true, true
		}
	}
	if !known {
		f.report(e.Pos(), "uses "+what, u.why)
	}
}

// find lists the places where something is used that nobody has said a reason for, and
// the reasons that nobody needs.
func (u use) find(tree fs.FS) (broken []string, err error) {
	needed := map[string]bool{}
	err = eachFile(tree, func(name string, src []byte) error {
		if strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parseFile(name, src)
		if err != nil {
			return err
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok {
				u.check(f, e, needed)
			}
			return true
		})
		broken = append(broken, f.broken...)
		return nil
	})
	for _, where := range slices.Sorted(maps.Keys(u.to)) {
		if !needed[where] {
			broken = append(broken, fmt.Sprintf("%s has no use of what the table allows there (%s)", where, u.to[where]))
		}
	}
	return broken, err
}

func TestUsesHaveReasons(t *testing.T) {
	for _, u := range uses {
		broken, err := u.find(os.DirFS("../.."))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range broken {
			t.Error(b)
		}
	}
}

// What is looked for is found, and nothing else.
func TestUsesAreFound(t *testing.T) {
	src := `package x

import (
	"os"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/workload"
)

func f(t time.Time, d time.Duration, info os.FileInfo, w any) {
	_ = t.UTC().Sub(t)
	_ = t.Round(0)
	_ = time.Unix(1, 0)
	_ = info.ModTime()
	_ = os.Rename("a", "b")
	_, _ = d.Round(time.Second), time.UTC
	_, _ = os.Open("a")
	_ = []string{result.Goodput, "loss"}
	_ = map[string]int{result.Goodput: 1, result.Higher: 2, "x": 3}
	_, _ = w.(workload.Workload)
	_, _ = w.(workload.Info)
}
`
	tree := fstest.MapFS{"internal/x/x.go": {Data: []byte(src)}, "internal/x/x_test.go": {Data: []byte(src)}}
	var got []string
	for _, u := range uses {
		u.to = nil
		broken, err := u.find(tree)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range broken {
			where, _, _ := strings.Cut(strings.TrimPrefix(b, "internal/x/x.go:"), ": a ")
			got = append(got, where)
		}
	}
	if diff := cmp.Diff([]string{"12: uses UTC", "13: uses Round(0)", "14: uses time.Unix", "15: uses ModTime", "16: uses os.Rename",
		"21: uses workload.Workload by assertion", "19: uses a list of metrics"}, got); diff != "" {
		t.Error(diff)
	}
}
