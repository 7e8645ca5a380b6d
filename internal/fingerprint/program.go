package fingerprint

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/host"
)

// versions lists commands whose first line of output has the version.
var versions = [][]string{
	{"iperf3", "--version"},
	{"qperf", "--version"},
	{"nginx", "-v"}, // prints to standard error
	{"ip", "-V"},
}

// programs sets tool.NAME for each installed program.
func (c *collector) programs() {
	for _, argv := range versions {
		if out, ok := c.output(argv...); ok {
			// Only the first line counts: iperf3's second line has the host name.
			line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
			c.set("tool."+argv[0], line)
		}
	}
}

// programTimeout is how long a program may take to print its version.
const programTimeout = 2 * time.Second

// output returns what a program prints to standard output, else to standard error; "" if the
// program is missing, fails or hangs.
func (c *collector) output(argv ...string) ([]byte, bool) {
	if c.opt.Runner == nil {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(c.ctx, programTimeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	p, err := c.opt.Runner.Start(ctx, host.Command{Argv: argv, Stdout: &stdout, Stderr: &stderr, OffMeasuredCPUs: true})
	if err != nil || p.Wait() != nil {
		return nil, false
	}
	if stdout.Len() > 0 {
		return stdout.Bytes(), true
	}
	return stderr.Bytes(), true
}

// plugins sets tool.cni.NAME for each program in the CNI path to the version that its Go build
// recorded, else to the start of its SHA-256. It does not run plugins, because what they do
// without arguments is not defined.
func (c *collector) plugins() {
	for _, dir := range c.opt.CNIPath {
		if !path.IsAbs(dir) {
			continue // skip an empty part of CNI_PATH
		}
		entries, _ := fs.ReadDir(c.root, below(dir)) // a missing folder is skipped
		for _, e := range entries {
			name := path.Join(below(dir), e.Name())
			info, err := fs.Stat(c.root, name) // follows symbolic links
			key := "tool.cni." + e.Name()
			if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 || c.env[key] != "" {
				continue
			}
			if v, ok := parse(c, name, pluginVersion); ok {
				c.set(key, v)
			}
		}
	}
}

func pluginVersion(r io.Reader) (string, error) {
	at, ok := r.(io.ReaderAt)
	if !ok {
		return "", errors.New("not a file that can be read at an offset")
	}
	if info, err := buildinfo.Read(at); err == nil {
		if v := info.Main.Version; v != "" && v != "(devel)" {
			return v, nil
		}
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(at, 0, 1<<62)); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))[:16], nil
}
