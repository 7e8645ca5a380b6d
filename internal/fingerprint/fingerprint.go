// Package fingerprint collects what explains a result: the kernel and its options, the CPU,
// virtualisation, memory, the uplink, the network sysctls and the programs that measure. It
// changes nothing and measures nothing. Because people publish runs, it collects nothing that
// names a person, a host, an address or a serial number. If a value cannot be read, its key is
// absent; it is never empty and never an error. Next: kernel.go is the pattern of every theme;
// compare.go says what may differ between two runs.
package fingerprint

import (
	"context"
	"io"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/host"
)

// Options says where to look besides the root.
type Options struct {
	// Runner runs programs, such as `iperf3 --version`, where the result is measured. If it is
	// nil, keys that need a program are absent.
	Runner host.Runner
	// CNIPath lists the folders of CNI plugins; the first one that has a plugin counts.
	CNIPath []string
	// Uplink is the interface to the other nodes; "" means eth0.
	Uplink string
}

// Collect reads the machine below root, which is "/" as os.DirFS or a fixture. Values that
// belong to a namespace (uplink, sysctls, conntrack) are those of the caller's namespaces. Keys
// are stable and have dots.
func Collect(ctx context.Context, root fs.FS, opt Options) map[string]string {
	if opt.Uplink == "" {
		opt.Uplink = "eth0"
	}
	c := &collector{ctx: ctx, root: root, opt: opt, link: readLink, env: map[string]string{}}
	c.collect()
	return c.env
}

// collector collects the values. It has one method for each theme, in a file of its own.
type collector struct {
	ctx  context.Context
	root fs.FS
	opt  Options
	link func(name string) (link, bool) // in the caller's network namespace
	env  map[string]string
}

func (c *collector) collect() {
	c.kernel()
	c.cpu()
	c.machine()
	c.sysctls()
	c.uplink()
	c.programs()
	c.plugins()
	c.set("go.version", runtime.Version())
}

// set records a value as one line. It ignores an empty value.
func (c *collector) set(key, value string) {
	if value = strings.Join(strings.Fields(value), " "); value != "" {
		c.env[key] = value
	}
}

// read returns the text of a small file without surrounding space; "" if the file cannot be
// read.
func (c *collector) read(name string) string {
	f, err := c.root.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// parse passes the file to a parser. It does nothing if the file cannot be read.
func parse[T any](c *collector, name string, parser func(io.Reader) (T, error)) (value T, ok bool) {
	f, err := c.root.Open(name)
	if err != nil {
		return value, false
	}
	defer f.Close()
	value, err = parser(f)
	return value, err == nil
}

// distinct returns the distinct contents of all matching files, sorted.
func (c *collector) distinct(pattern string) []string {
	names, _ := fs.Glob(c.root, pattern) // fails for a bad pattern only
	var values []string
	for _, name := range names {
		if v := c.read(name); v != "" {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// below converts an absolute path to a name in the root file system.
func below(absolute string) string { return strings.TrimPrefix(path.Clean(absolute), "/") }

// onOff returns "on" for 1, "off" for 0, and "" for any other text.
func onOff(text string) string {
	switch text {
	case "0":
		return "off"
	case "1":
		return "on"
	}
	return ""
}
