package tune

import (
	"cmp"
	"strings"
)

// Place is where a machine keeps a value that can be read, written and so
// taken back.
type Place struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
}

func file(path string) Place { return Place{File, path} }
func mask(path string) Place { return Place{Mask, path} }

// sysctlPath is where the key of sysctl(8) lies; an interface's own dots are
// written as slashes.
func sysctlPath(key string) string { return "/proc/sys/" + dotsAndSlashes.Replace(key) }

var dotsAndSlashes = strings.NewReplacer(".", "/", "/", ".")

func sysctl(key string) Place { return file(sysctlPath(key)) }

// sysctlKey is the key of a sysctl, "" for any other place.
func (p Place) sysctlKey() string {
	path, ok := strings.CutPrefix(p.Name, "/proc/sys/")
	if !ok || p.Kind != File {
		return ""
	}
	return dotsAndSlashes.Replace(path)
}

// String is the place as people name it.
func (p Place) String() string {
	if key := p.sysctlKey(); key != "" {
		return key
	}
	title := cmp.Or(ways[p.Kind].title, string(p.Kind)+" NAME") // a journal can name a kind that is not known
	return strings.ReplaceAll(title, "NAME", p.Name)
}

// Same says that two texts are the same value there: space does not count, nor
// do the leading zeros and commas of a mask.
func (p Place) Same(a, b string) bool {
	if p.Kind == Mask {
		return strings.TrimLeft(strings.ReplaceAll(tidy(a), ",", ""), "0") == strings.TrimLeft(strings.ReplaceAll(tidy(b), ",", ""), "0")
	}
	return tidy(a) == tidy(b)
}

// tidy is the text with single spaces, on one line.
func tidy(text string) string { return strings.Join(strings.Fields(text), " ") }
