package importer

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/cnibench/cnibench/internal/result"
)

var update = flag.Bool("update", false, "write golden files")

// unpack writes an archive's files below dir.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", archive))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range a.Files {
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// describe is a run as text: its faults, and what became of its samples.
func describe(rec *result.Record) string {
	var b strings.Builder
	for _, f := range rec.Faults {
		fmt.Fprintf(&b, "fault %s:%d: %s\n", f.File, f.Line, f.Text)
	}
	for _, s := range rec.Samples {
		fmt.Fprintf(&b, "%s %s %d %s", s.Contender, s.Step, s.Round, s.Verdict)
		for _, name := range slices.Sorted(maps.Keys(s.Metrics)) {
			if !strings.HasPrefix(name, "cpu") {
				fmt.Fprintf(&b, " %s=%g", name, s.Metrics[name])
			}
		}
		b.WriteByte('\n')
		for _, r := range s.Reasons {
			fmt.Fprintf(&b, "  %s: %s\n", r.Code, r.Text)
		}
		for _, r := range s.Notes {
			fmt.Fprintf(&b, "  note %s: %s\n", r.Code, r.Text)
		}
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got, -update writes it):\n%s", file, diff)
	}
}

func TestFaulty(t *testing.T) {
	dir := t.TempDir()
	unpack(t, "faulty.txtar", dir)
	rec, _ := load(t, "infrabuilder", dir)
	golden(t, "faulty.golden", describe(rec))
}

func TestKnb(t *testing.T) {
	dir := t.TempDir()
	unpack(t, "knb.txtar", dir)
	rec, _ := load(t, "knb", dir)
	golden(t, "knb.golden", describe(rec))
}

func TestStatexec(t *testing.T) {
	dir := t.TempDir()
	text := recording("x", 2, 12, 2)
	for name, text := range map[string]string{
		"server.prom": text,
		"again.prom":  text,
		"client.prom": strings.ReplaceAll(text, `role="server"`, `role="client"`),
		"cut.prom":    strings.ReplaceAll(text[:len(text)-20], `id="x"`, `id="cut"`),
		"empty.prom":  "\n",
		"other.prom":  "node_load1 0.5 1704067200000\n",
		"two.prom":    text + strings.ReplaceAll(text, `id="x"`, `id="y"`),
		"crlf.prom":   strings.ReplaceAll(strings.ReplaceAll(text, `id="x"`, `id="<i>z"`), "\n", "\r\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rec, _ := load(t, "statexec", dir)
	golden(t, "statexec.golden", describe(rec))
	for _, s := range rec.Samples {
		if s.Contender == "x" && (s.Metrics["cpu_client"] < 0.23 || s.Metrics["cpu_client"] > 0.25 || s.Raw == "") {
			t.Errorf("cpu_client %v, raw %q; want 2 CPUs × 0.12", s.Metrics["cpu_client"], s.Raw)
		}
	}
}

// TestHostile makes what can't be in an archive. Nothing outside the tree may
// come into the run.
func TestHostile(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("DTS_BW=123\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	study{configs: []string{"baremetal"}, rounds: 1, intervals: 2}.write(t, dir)
	run := filepath.Join(dir, "baremetal", "1")
	for _, err := range []error{
		os.Remove(filepath.Join(run, "dts.results")), os.Symlink(secret, filepath.Join(run, "dts.results")),
		os.Symlink(filepath.Dir(secret), filepath.Join(dir, "outside")), os.Symlink("..", filepath.Join(dir, "loop")),
		os.Remove(filepath.Join(run, "dtm-client.stdout")), syscall.Mkfifo(filepath.Join(run, "dtm-client.stdout"), 0o644),
		os.Truncate(filepath.Join(run, "dus-client.stdout"), 1<<40),
		os.WriteFile(filepath.Join(run, "dum-client.stdout"), []byte(`{"start":`+strings.Repeat("[", 1<<20)), 0o644),
		os.Mkdir(filepath.Join(dir, "\x1b[31mred\nline\xff"), 0o755), os.Mkdir(filepath.Join(dir, "\x1b[31mred\nline\xff", "1"), 0o755),
		os.WriteFile(filepath.Join(dir, "\x1b[31mred\nline\xff", "1", "dts.results"), []byte("DTS_BW=1e9\nDTS_RTS=0\n"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	rec, _ := load(t, "infrabuilder", dir)
	text := describe(rec)
	for _, want := range []string{
		"baremetal/1/dts.results:0: a symbolic link; it is not followed", "fault outside:0: a symbolic link", "fault loop:0: a symbolic link",
		"baremetal/1/dtm-client.stdout:0: neither a file nor a folder", "baremetal/1/dus-client.stdout:0: not read: 1099511627776 bytes, over the limit",
		"baremetal/1/dum-client.stdout:1: invalid character '[' exceeded max depth",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") || strings.Contains(text, "\xff") || strings.Contains(text, "=123") {
		t.Errorf("control characters or the secret got through:\n%s", text)
	}
}

func TestNothing(t *testing.T) {
	for _, format := range Formats() {
		_, err := Import(context.Background(), format, t.TempDir(), filepath.Join(t.TempDir(), "run"), Options{})
		if !errors.Is(err, ErrNothing) {
			t.Errorf("%s of an empty folder: %v", format, err)
		}
	}
	if _, err := Import(context.Background(), "knbb", t.TempDir(), "x", Options{}); err == nil || !strings.Contains(err.Error(), "knb") {
		t.Errorf("unknown format: %v", err)
	}
}
