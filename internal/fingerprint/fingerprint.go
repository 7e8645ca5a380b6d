// Package fingerprint collects what explains a result: the kernel and its
// options, the CPU, virtualisation, memory, the uplink, the network sysctls
// and the programs that measure. It changes nothing, measures nothing, and
// takes nothing that names a person, a host, an address or a serial number,
// because people publish runs. What cannot be read is a gap: the key is
// absent, never empty and never an error. Next: kernel.go as the pattern for
// every theme, then compare.go for what may differ between two runs.
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

// Options say where to look besides the root.
type Options struct {
	// Runner runs `iperf3 --version` and its like where the result is
	// measured; nil leaves out every key that needs a program.
	Runner host.Runner
	// CNIPath is the folders of CNI plugins, the first with a plugin wins.
	CNIPath []string
	// Uplink is the interface towards the other nodes; "" is eth0.
	Uplink string
}

// Collect reads the machine below root, which is "/" as os.DirFS or a fixture.
// Namespaced values (uplink, sysctls, conntrack) are those of the namespaces
// that the caller runs in. Keys are stable, with dots.
func Collect(ctx context.Context, root fs.FS, opt Options) map[string]string {
	if opt.Uplink == "" {
		opt.Uplink = "eth0"
	}
	c := &collector{ctx: ctx, root: root, opt: opt, link: readLink, env: map[string]string{}}
	c.collect()
	return c.env
}

// collector gathers the values; its methods are one per theme and file.
type collector struct {
	ctx  context.Context
	root fs.FS
	opt  Options
	link func(name string) (link, bool) // of the caller's network namespace
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

// set records a value on one line; an empty one is a gap.
func (c *collector) set(key, value string) {
	if value = strings.Join(strings.Fields(value), " "); value != "" {
		c.env[key] = value
	}
}

// read gives a small file without surrounding space, or "" if there is none.
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

// parse gives the file to a parser; one that cannot be read is a gap.
func parse[T any](c *collector, name string, parser func(io.Reader) (T, error)) (value T, ok bool) {
	f, err := c.root.Open(name)
	if err != nil {
		return value, false
	}
	defer f.Close()
	value, err = parser(f)
	return value, err == nil
}

// distinct gives the different contents of all files that match, sorted.
func (c *collector) distinct(pattern string) []string {
	names, _ := fs.Glob(c.root, pattern) // the only error is a bad pattern
	var values []string
	for _, name := range names {
		if v := c.read(name); v != "" {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// below turns an absolute path into a name of the root file system.
func below(absolute string) string { return strings.TrimPrefix(path.Clean(absolute), "/") }

// onOff is the word for a switch that the kernel shows as 0 or 1, "" for any
// other text.
func onOff(text string) string {
	switch text {
	case "0":
		return "off"
	case "1":
		return "on"
	}
	return ""
}
