package tune

import (
	"cmp"
	"strings"
)

// Place is where a machine keeps a value that can be read and written, and so reverted.
type Place struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
}

func file(path string) Place { return Place{File, path} }
func mask(path string) Place { return Place{Mask, path} }

// sysctlPath returns the file of a key of sysctl(8). In a key, a dot of an interface's name
// is written as a slash.
func sysctlPath(key string) string { return "/proc/sys/" + dotsAndSlashes.Replace(key) }

var dotsAndSlashes = strings.NewReplacer(".", "/", "/", ".")

func sysctl(key string) Place { return file(sysctlPath(key)) }

// sysctlKey returns the key of a sysctl, "" for any other place.
func (p Place) sysctlKey() string {
	path, ok := strings.CutPrefix(p.Name, "/proc/sys/")
	if !ok || p.Kind != File {
		return ""
	}
	return dotsAndSlashes.Replace(path)
}

// String returns the usual name of the place.
func (p Place) String() string {
	if key := p.sysctlKey(); key != "" {
		return key
	}
	title := cmp.Or(accessors[p.Kind].title, string(p.Kind)+" NAME") // the journal of another version may name an unknown kind
	return strings.ReplaceAll(title, "NAME", p.Name)
}

// Same reports whether two texts are the same value at the place. It ignores the amount of
// space, and the leading zeros and commas of a mask.
func (p Place) Same(a, b string) bool {
	if p.Kind == Mask {
		return strings.TrimLeft(strings.ReplaceAll(tidy(a), ",", ""), "0") == strings.TrimLeft(strings.ReplaceAll(tidy(b), ",", ""), "0")
	}
	return tidy(a) == tidy(b)
}

// tidy returns the text on one line, with single spaces.
func tidy(text string) string { return strings.Join(strings.Fields(text), " ") }
