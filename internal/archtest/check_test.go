package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/cnibench/cnibench"

// check reads every Go file below root, whatever its build tags, and says
// what breaks a rule: file, line, what, and the rule's reason.
func check(root fs.FS) ([]string, error) {
	var broken []string
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if skipped(root, name) {
				return fs.SkipDir
			}
			return nil
		case !strings.HasSuffix(name, ".go"):
			return nil
		}
		src, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		found, err := checkFile(name, src)
		broken = append(broken, found...)
		return err
	})
	return broken, err
}

// skipped folders hold no code of this module.
func skipped(root fs.FS, dir string) bool {
	base := path.Base(dir)
	if dir == "." {
		return false
	}
	if base == "testdata" || base == "vendor" || base == "node_modules" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := fs.Stat(root, path.Join(dir, "go.mod"))
	return err == nil
}

type file struct {
	name, pkg string
	set       *token.FileSet
	ast       *ast.File
	broken    []string
}

func checkFile(name string, src []byte) (broken []string, err error) {
	f := &file{name: name, pkg: path.Dir(name), set: token.NewFileSet()}
	if f.ast, err = parser.ParseFile(f.set, name, src, parser.ParseComments|parser.SkipObjectResolution); err != nil {
		return nil, err
	}
	f.noInit()
	if strings.HasSuffix(name, "_test.go") {
		return f.broken, nil
	}
	f.noHiddenInterface()
	for _, l := range layers {
		if matches(l.pkg, f.pkg) && f.pkg != l.but {
			f.layer(l)
		}
	}
	for _, c := range confinements {
		f.confined(c)
	}
	return f.broken, nil
}

func (f *file) report(pos token.Pos, what, why string) {
	f.broken = append(f.broken, fmt.Sprintf("%s:%d: %s: %s", f.name, f.set.Position(pos).Line, what, why))
}

func (f *file) noInit() {
	if ast.IsGenerated(f.ast) {
		return
	}
	for _, d := range f.ast.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			f.report(fn.Pos(), "has an init function", "all.go lists what there is, in order, where a reader looks for it")
		}
	}
}

// noHiddenInterface finds values that are asked for methods of an interface
// without a name, which their declared type does not promise.
func (f *file) noHiddenInterface() {
	hidden := func(e ast.Expr) {
		if i, ok := e.(*ast.InterfaceType); ok && len(i.Methods.List) > 0 {
			f.report(e.Pos(), "asks a value for methods that no declared interface has",
				"whoever wraps the value loses them without notice: put the methods into the interface that the value is passed as")
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeAssertExpr:
			hidden(n.Type)
		case *ast.TypeSwitchStmt:
			for _, c := range n.Body.List {
				for _, e := range c.(*ast.CaseClause).List {
					hidden(e)
				}
			}
		}
		return true
	})
}

func (f *file) layer(l layer) {
	for _, spec := range f.ast.Imports {
		imported := importPath(spec)
		if l.only != nil && imported != f.pkg && !anyMatches(l.only, imported) || anyMatches(l.never, imported) {
			f.report(spec.Pos(), "imports "+imported, l.why)
		}
	}
	if len(l.calls) == 0 {
		return
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok {
				if name := f.pathOf(x.Name) + "." + sel.Sel.Name; slices.Contains(l.calls, name) {
					f.report(sel.Pos(), "uses "+name, l.why)
				}
			}
		}
		return true
	})
}

func (f *file) confined(c confined) {
	if anyMatches(c.to, f.pkg) || slices.Contains(c.to, f.name) {
		return
	}
	for _, spec := range f.ast.Imports {
		if imported := importPath(spec); anyMatches(c.what, imported) && imported != c.but {
			f.report(spec.Pos(), "imports "+imported, c.why)
		}
	}
}

// pathOf is the import path behind a package's name in this file.
func (f *file) pathOf(name string) string {
	for _, spec := range f.ast.Imports {
		imported := importPath(spec)
		if spec.Name != nil && spec.Name.Name == name || spec.Name == nil && path.Base(imported) == name {
			return imported
		}
	}
	return ""
}

// importPath names packages of this module by their folders.
func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value // the parser has refused it
	}
	if p == module {
		return "."
	}
	return strings.TrimPrefix(p, module+"/")
}

func anyMatches(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, pkg) })
}

func matches(pattern, pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	library := strings.Contains(first, ".") && pkg != "."
	switch pattern {
	case "libs":
		return library
	case "std":
		return !library && !ours(first)
	}
	if dir, below := strings.CutSuffix(pattern, "/..."); below {
		return pkg == dir || strings.HasPrefix(pkg, dir+"/")
	}
	return pkg == pattern
}

// ours says that a path of one element without a dot is a folder of this
// module and not a package of the standard library.
func ours(first string) bool {
	return slices.Contains([]string{".", "internal", "contenders", "corpus", "suites", "studies", "docs", "explorer", "deploy", "pod", "tools"}, first)
}
