package archtest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const (
	mostMethods = 35   // of a type; with more of them it has several jobs
	mostLines   = 4000 // of a package without its tests; a larger one has rooms
	mostCommand = 200  // lines of a file of the command line, which is flags, wiring and exit codes
)

// sizes are the lines of each package without tests, and the methods of each type.
func sizes(root fs.FS) (lines, methods map[string]int, err error) {
	lines, names := map[string]int{}, map[string]map[string]bool{}
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if skipped(root, name) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		src, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		lines[path.Dir(name)] += bytes.Count(src, []byte("\n"))
		file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv != nil {
				of := path.Dir(name) + "." + receiver(fn.Recv.List[0].Type)
				if names[of] == nil {
					names[of] = map[string]bool{}
				}
				names[of][fn.Name.Name] = true // once, where systems have their own
			}
		}
		return nil
	})
	methods = map[string]int{}
	for of, set := range names {
		methods[of] = len(set)
	}
	return lines, methods, err
}

func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return "?"
}

func TestNothingIsTooLarge(t *testing.T) {
	lines, methods, err := sizes(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []struct {
		sizes map[string]int
		most  int
		what  string
	}{{lines, mostLines, "lines without its tests"}, {methods, mostMethods, "methods"}} {
		for _, name := range slices.Sorted(maps.Keys(kind.sizes)) {
			if n := kind.sizes[name]; n > kind.most {
				t.Errorf("%s has %d %s, more than %d: split it", name, n, kind.what, kind.most)
			}
		}
	}
}

func TestFilesOfTheCommandLineAreShort(t *testing.T) {
	for _, pattern := range []string{"../cli/*.go", "../cli/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, files, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			src, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if n := bytes.Count(src, []byte("\n")); n >= mostCommand {
				t.Errorf("%s has %d lines; fewer than %d are allowed: what does the work belongs into internal/run or a package of its own", name, n, mostCommand)
			}
		}
	}
}

func TestSizesAreCounted(t *testing.T) {
	lines, methods, err := sizes(fstest.MapFS{
		"a/x.go":          {Data: []byte("package a\n\ntype t[K any] struct{}\n\nfunc (*t[K]) one() {}\n")},
		"a/x_linux.go":    {Data: []byte("package a\n\nfunc (t[K]) two() {}\n")},
		"a/x_other.go":    {Data: []byte("package a\n\nfunc (t[K]) two() {}\n")},
		"a/x_test.go":     {Data: []byte("package a\n\nfunc (t[K]) three() {}\n")},
		"a/testdata/x.go": {Data: []byte("package a\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"a": 11}, lines); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int{"a.t": 2}, methods); diff != "" {
		t.Error(diff)
	}
}
