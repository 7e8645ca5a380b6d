package strictyaml

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/cnibench/cnibench/internal/text"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// unknownKey returns the message for a key that the type has no field for: the
// nearest key of the same mapping, or all of its keys.
func unknownKey(key *token.Token, body ast.Node, into any) string {
	if key == nil {
		return "unknown key"
	}
	known := keysBeside(key, body, reflect.TypeOf(into))
	if len(known) == 0 {
		return fmt.Sprintf("unknown key %q", key.Value)
	}
	return text.Unknown("key", key.Value, known).Error()
}

// keysBeside returns the keys that t allows in the mapping that holds key. It
// walks document and type together, because the library names the key alone.
func keysBeside(key *token.Token, node ast.Node, t reflect.Type) []string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch n := node.(type) {
	case *ast.MappingNode:
		fields := fieldTypes(t)
		for _, entry := range n.Values {
			name := entry.Key.GetToken()
			if fields != nil && name.Position.Offset == key.Position.Offset {
				return keys(t)
			}
			next := fields[name.Value]
			if t.Kind() == reflect.Map {
				next = t.Elem()
			}
			if next == nil {
				continue
			}
			if found := keysBeside(key, entry.Value, next); found != nil {
				return found
			}
		}
	case *ast.SequenceNode:
		if t.Kind() != reflect.Slice {
			return nil
		}
		for _, item := range n.Values {
			if found := keysBeside(key, item, t.Elem()); found != nil {
				return found
			}
		}
	case *ast.AnchorNode:
		return keysBeside(key, n.Value, t)
	}
	return nil
}

// fieldTypes maps the YAML keys of a struct to the types of their fields; nil
// if t is no struct.
func fieldTypes(t reflect.Type) map[string]reflect.Type {
	if t.Kind() != reflect.Struct {
		return nil
	}
	types := map[string]reflect.Type{}
	for i := range t.NumField() {
		if name := yamlName(t.Field(i)); name != "" {
			types[name] = t.Field(i).Type
		}
	}
	return types
}

// keys returns the YAML keys of a struct in the order of its fields.
func keys(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		if name := yamlName(t.Field(i)); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// yamlName returns the key of a field: its tag, or its name in lower case as the
// library has it; "" if the field takes part in no YAML.
func yamlName(f reflect.StructField) string {
	tag, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	switch {
	case tag == "-" || !f.IsExported():
		return ""
	case tag == "":
		return strings.ToLower(f.Name)
	}
	return tag
}
