//go:build linux

package wire

import (
	"maps"
	"slices"

	"github.com/cnibench/cnibench/internal/text"
)

// Params are a piece's parameters as a contender file gives them.
type Params map[string]any

// Check refuses parameters that a piece does not know.
func (p Params) Check(piece string, known []string) error {
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if !slices.Contains(known, name) {
			return text.Unknown("parameter of "+piece, name, known)
		}
	}
	return nil
}

// Int returns a whole number, or the default where it is not given.
func (p Params) Int(name string, def int) int {
	switch v := p[name].(type) {
	case int:
		return v
	case int64:
		return int(v)
	case uint64:
		return int(v)
	}
	return def
}

// Text returns a text, or the default where it is not given.
func (p Params) Text(name, def string) string {
	if v, ok := p[name].(string); ok {
		return v
	}
	return def
}

// OneOf returns a text that is one of the words; the first of them where it is not
// given. Any other is an error that names the piece.
func (p Params) OneOf(piece, name string, words ...string) (string, error) {
	v := p.Text(name, words[0])
	if !slices.Contains(words, v) {
		return "", text.Unknown(piece+" "+name, v, words)
	}
	return v, nil
}

// Bool returns a truth value, or the default where it is not given.
func (p Params) Bool(name string, def bool) bool {
	if v, ok := p[name].(bool); ok {
		return v
	}
	return def
}
