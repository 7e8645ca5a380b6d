// Package strictyaml decodes the project's YAML data files and refuses what it
// does not understand: an unknown key, a key given twice, a value of the wrong
// type, a second document. It knows nothing of what the files mean. Next: keys.go,
// which finds the key that a writer meant.
package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxBytes bounds what Decode reads: a data file is a page or two, and the
// parser recurses, so a hostile megabyte of brackets could exhaust the stack.
const maxBytes = 256 << 10

// Error is a file that cannot be used, with the place to mend. Line counts
// from 1; it is 0 when the whole file is meant.
type Error struct {
	File string
	Line int
	Msg  string
}

// Error prints file:line: message, as compilers do.
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Msg)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

// Load returns what read makes of every *.yaml file at the top of fsys, sorted by id.
// folder is that of the names that read gets.
func Load[T any](fsys fs.FS, folder string, read func(file string, r io.Reader) (T, error), id func(T) string) ([]T, error) {
	files, err := fs.Glob(fsys, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", folder, err)
	}
	one := func(file string) (T, error) {
		f, err := fsys.Open(file)
		if err != nil {
			var none T
			return none, fmt.Errorf("%s: %w", folder, err)
		}
		defer f.Close()
		return read(path.Join(folder, file), f)
	}
	all := make([]T, 0, len(files))
	for _, file := range files {
		x, err := one(file)
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b T) int { return strings.Compare(id(a), id(b)) })
	return all, nil
}

// Decode reads the one YAML document in r into the struct that into points to.
// file is the name that errors carry. What is wrong with the document comes
// back as *Error; a failure of r itself comes back wrapped.
func Decode(file string, r io.Reader, into any) error {
	if t := reflect.TypeOf(into); t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("strictyaml: decode %s: want a pointer to a struct, have %T", file, into)
	}
	data, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	if len(data) > maxBytes {
		return &Error{File: file, Msg: fmt.Sprintf("larger than %d KiB; a data file holds a page or two", maxBytes>>10)}
	}
	tree, err := parser.ParseBytes(data, 0)
	if err != nil {
		return locate(file, err, nil, into)
	}
	body, err := onlyBody(file, tree)
	if err != nil {
		return err
	}
	refs := references{file: file}
	ast.Walk(&refs, body)
	if refs.err != nil {
		return refs.err
	}
	dec := yaml.NewDecoder(bytes.NewReader(nil), yaml.Strict())
	if err := dec.DecodeFromNode(body, into); err != nil {
		return locate(file, err, body, into)
	}
	return nil
}

// Must decodes a file that is a part of the program into a struct: what is wrong with it
// is a panic.
func Must[T any](file, text string) (into T) {
	if err := Decode(file, strings.NewReader(text), &into); err != nil {
		panic(err)
	}
	return into
}

// references finds anchors and what refers to them: a short file could take all memory
// with them, and says at one place what counts at another. It finds tags, too: no data
// file needs one, and some bring the decoder down.
type references struct {
	file string
	err  error
}

// Visit implements ast.Visitor.
func (r *references) Visit(node ast.Node) ast.Visitor {
	what := ""
	switch node.Type() {
	case ast.AnchorType, ast.AliasType, ast.MergeKeyType:
		what = "references (&, *, <<)"
	case ast.TagType:
		what = "tags (!)"
	default:
		return r
	}
	if r.err == nil {
		r.err = &Error{r.file, line(node.GetToken()), what + " are not read; write out what is meant"}
	}
	return nil
}

// onlyBody is the content of the file's single document.
func onlyBody(file string, tree *ast.File) (ast.Node, error) {
	var body ast.Node
	for _, doc := range tree.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType || doc.Body.Type() == ast.NullType {
			continue
		}
		if body != nil {
			return nil, &Error{File: file, Line: line(doc.Body.GetToken()), Msg: "a second document; one file holds one"}
		}
		body = doc.Body
	}
	if body == nil {
		return nil, &Error{File: file, Msg: "empty"}
	}
	return body, nil
}

// locate turns the library's error into one with the file, the line and words
// for a reader who does not know the Go types.
func locate(file string, err error, body ast.Node, into any) error {
	var (
		typed    *yaml.TypeError
		overflow *yaml.OverflowError
		unknown  *yaml.UnknownFieldError
		shape    *yaml.UnexpectedNodeTypeError
		any      yaml.Error
	)
	switch {
	case errors.As(err, &unknown):
		return &Error{file, line(unknown.Token), unknownKey(unknown.Token, body, into)}
	case errors.As(err, &typed):
		return &Error{file, line(typed.Token), fmt.Sprintf("%s is not %s", value(typed.Token), kind(typed.DstType))}
	case errors.As(err, &shape):
		return &Error{file, line(shape.Token), fmt.Sprintf("%s is not %s", value(shape.Token), nodeKind(shape.Expected))}
	case errors.As(err, &overflow):
		return &Error{file, line(overflow.Token), fmt.Sprintf("%s is too large or too small", overflow.SrcNum)}
	case errors.As(err, &any):
		return &Error{file, line(any.GetToken()), any.GetMessage()}
	}
	return &Error{File: file, Msg: err.Error()}
}

func line(t *token.Token) int {
	if t == nil || t.Position == nil {
		return 0
	}
	return t.Position.Line
}

func value(t *token.Token) string {
	switch {
	case t == nil:
		return "this"
	case t.Type == token.MappingValueType || t.Type == token.MappingStartType:
		return "a mapping"
	case t.Type == token.SequenceEntryType || t.Type == token.SequenceStartType:
		return "a list"
	}
	return fmt.Sprintf("%q", t.Value)
}

func nodeKind(t ast.NodeType) string {
	switch t {
	case ast.MappingType, ast.MappingValueType:
		return "a mapping"
	case ast.SequenceType:
		return "a list"
	}
	return "a " + t.YAMLName()
}

func kind(t reflect.Type) string {
	if t == nil {
		return "what belongs here"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "a mapping"
	case reflect.Pointer:
		return kind(t.Elem())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return t.String()
}
