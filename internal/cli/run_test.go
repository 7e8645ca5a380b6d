package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/testutil/vmtest"
)

// parsed are the flags of a command line.
func parsed(t *testing.T, args ...string) (*cobra.Command, *runFlags) {
	t.Helper()
	f := &runFlags{Request: run.NewRequest()}
	c := f.command()
	if err := c.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	f.from(c)
	return c, f
}

// What settings writes is what adopt takes back, in a plan of its own.
func TestSettings(t *testing.T) {
	args := []string{"--arena=microvm", "--services=1,100", "--rates=given", "--kernel=6.1", "--accel=tcg", "--vm-cpus=3", "--vm-memory=1G", "--mtu=9000",
		"--steps=dts", "--set=dts.streams=4", "--set=d*.zerocopy=true"}
	_, then := parsed(t, args...)
	want := then.Settings()
	for flag, value := range map[string]string{
		"services": "1,100", "rates": "given", "kernel": "6.1", "accel": "tcg", "vm-cpus": "3", "vm-memory": "1G", "mtu": "9000",
		"steps": "dts", "set": "dts.streams=4\nd*.zerocopy=true",
	} {
		if want[flag] != value {
			t.Errorf("setting %s is %q, want %q", flag, want[flag], value)
		}
	}
	_, now := parsed(t, "--arena=microvm")
	if err := now.ApplyRecorded(want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, now.Settings()); diff != "" {
		t.Error(diff)
	}
	// The command line's own guest is preferred.
	_, now = parsed(t, "--arena=microvm", "--kernel=6.12")
	if err := now.ApplyRecorded(want); err != nil {
		t.Fatal(err)
	}
	if now.Guest.Kernel != "6.12" || now.Guest.Accel != "tcg" {
		t.Errorf("%+v", now.Guest)
	}
	_, plain := parsed(t)
	for flag := range plain.Settings() {
		if flag == "services" || strings.HasPrefix(flag, "vm-") || flag == "kernel" {
			t.Errorf("%s was not given, but is in the plan", flag)
		}
	}
}

// A plan sets no flag that is not a setting, nor a guest that can't be.
func TestAdoptRefuses(t *testing.T) {
	for flag, value := range map[string]string{"keep": "true", "out": "/etc", "contenders": "host", "vm-memory": "1", "accel": "yes"} {
		_, f := parsed(t)
		if err := f.ApplyRecorded(map[string]string{flag: value}); err == nil {
			t.Errorf("--%s %s was taken from a plan", flag, value)
		}
	}
}

// The host's lock keeps two guests off one run directory.
func TestGuestRunIsLocked(t *testing.T) {
	vmtest.Kernel(t)
	dir := filepath.Join(t.TempDir(), "run")
	store, err := result.Create(dir, &result.Run{ID: "r", Arena: run.MicroVM, Baseline: "host", Plan: result.Plan{
		Suite: "throughput", Rounds: 1, Contenders: []result.Entry{{ID: "host", Underlay: "switch"}},
		Steps: []result.Step{{ID: "dts", Workload: "tcp_stream", Path: "pod"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	unlock, err := result.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unlock() }()
	if code, _, stderr := command(t, "run", "--resume", dir); code != exit.Failed || !strings.Contains(stderr, result.ErrLocked.Error()) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
