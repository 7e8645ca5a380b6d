package tune

import (
	"fmt"
	"strings"
)

// Kind is a way of reading and writing a value.
type Kind string

// The kinds of places.
const (
	File    Kind = "file"    // a file of /proc or /sys; the name is its path
	Mask    Kind = "mask"    // such a file that holds a mask of CPUs
	Ring    Kind = "ring"    // a ring size of an interface, ethtool -g: "eth0 rx", descriptors
	Feature Kind = "feature" // an offload of an interface, ethtool -k: "eth0 rx-gro", on or off
	Service Kind = "service" // a service of systemd: active or inactive
	Tuned   Kind = "tuned"   // the profile of tuned-adm; "off" is none
	Notrack Kind = "notrack" // ports that connection tracking passes by; "none" is none
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
	switch p.Kind {
	case File, Mask:
		if key := p.sysctlKey(); key != "" {
			return key
		}
		return p.Name
	case Ring:
		return p.Name + " ring"
	case Feature:
		return "offload " + p.Name
	case Service:
		return "service " + p.Name
	case Tuned:
		return "tuned profile"
	case Notrack:
		return "ports without connection tracking"
	}
	return fmt.Sprintf("%s %s", p.Kind, p.Name)
}

// Same says that two texts are the same value there: space does not count, nor
// do the leading zeros and commas of a mask.
func (p Place) Same(a, b string) bool {
	if p.Kind == Mask {
		return strings.TrimLeft(strings.ReplaceAll(tidy(a), ",", ""), "0") == strings.TrimLeft(strings.ReplaceAll(tidy(b), ",", ""), "0")
	}
	return tidy(a) == tidy(b)
}

// outlivesBoot says that the machine has the value again after it was started
// anew.
func (p Place) outlivesBoot() bool { return p.Kind == Tuned }

// tidy is the text with single spaces, on one line.
func tidy(text string) string { return strings.Join(strings.Fields(text), " ") }
