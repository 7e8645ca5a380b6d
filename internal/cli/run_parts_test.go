package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/vm"
)

// writeRun writes a run with those samples.
func writeRun(t *testing.T, dir string, run *result.Run, samples ...result.Sample) {
	t.Helper()
	store, err := result.Create(dir, run)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, s := range samples {
		if err := store.Seal(&s); err != nil {
			t.Fatal(err)
		}
	}
}

func runOf(arenaName string, contenders ...string) *result.Run {
	run := &result.Run{ID: "r", Arena: arenaName, Baseline: "host", Plan: result.Plan{
		Suite: "throughput", Rounds: 1, Settings: map[string]string{}, Steps: []result.Step{{ID: "dts", Workload: "tcp_stream", Path: "pod"}},
	}}
	for _, id := range contenders {
		run.Plan.Contenders = append(run.Plan.Contenders, result.Entry{ID: id, Underlay: "switch"})
		run.Contenders = append(run.Contenders, result.ContenderInfo{ID: id})
	}
	return run
}

func sampleOf(verdict result.Verdict, step, kernel string) result.Sample {
	return result.Sample{
		Contender: "host", Underlay: "switch", Kernel: kernel, Round: 1, Step: step, Workload: "tcp_stream", Path: "pod",
		Verdict: verdict, Metrics: map[string]float64{"goodput": 1e9},
	}
}

// A run whose only valid samples are the guest's is no failed one.
func TestNoneValid(t *testing.T) {
	invalid, valid := sampleOf(result.Invalid, "dts", "6.18"), sampleOf(result.Valid, "dts", "6.12")
	setup := sampleOf(result.Valid, result.SetupStep, "6.18")
	for name, test := range map[string]struct {
		native, part []result.Sample
		want         int
	}{
		"native":        {[]result.Sample{valid}, nil, exitDone},
		"only the part": {[]result.Sample{invalid, setup}, []result.Sample{valid}, exitDone},
		"neither":       {[]result.Sample{invalid}, []result.Sample{invalid}, exitGate},
		"only set up":   {[]result.Sample{setup}, nil, exitGate},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			writeRun(t, dir, runOf("lab", "host"), test.native...)
			if test.part != nil {
				writeRun(t, filepath.Join(dir, partDir), runOf(arenaMicroVM, "host"), test.part...)
			}
			rec, err := result.Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			got := exitDone
			if err := noneValid(dir, rec); err != nil {
				got = exitCode(err)
			}
			if got != test.want {
				t.Errorf("exit code %d, want %d", got, test.want)
			}
		})
	}
}

// poor is an arena that runs the baseline alone.
type poor struct{ arena.Arena }

func (poor) Name() string                               { return "lab" }
func (poor) Variant(*contender.Contender) string        { return "switch" }
func (poor) HasPath(*contender.Contender, string) error { return nil }
func (poor) Supports(_ context.Context, c *contender.Contender) error {
	if c.ID == "host" {
		return nil
	}
	return &arena.Unsupported{Reason: "kernel 6.1 lacks netkit", Remedy: "boot a newer one", OtherKernel: true}
}

// A guest that can run none of what is left to it says so in the part, which
// the report of both carries, and ends what was asked for by name with 3.
func TestPartRunsNothing(t *testing.T) {
	t.Setenv(vm.GuestEnv, "6.1")
	t.Setenv(vm.EmulatedEnv, "true")
	dir := filepath.Join(t.TempDir(), "run")
	whole := runOf("lab", "host")
	whole.Unsupported = []result.Unsupported{{Contender: "cilium-netkit", Reason: "kernel 6.18 lacks netkit", OtherKernel: true}}
	writeRun(t, dir, whole, sampleOf(result.Valid, "dts", "6.18"))
	cat, err := loadCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	j := &job{flags: &runFlags{baseline: "host", out: filepath.Join(dir, partDir)}, catalogue: cat, ground: &labGround{}, only: []string{"cilium-netkit"}, plan: whole.Plan}
	j.plan.Contenders = nil
	if _, _, _, err := j.open(t.Context(), poor{}, nil); err == nil || exitCode(err) != exitUnsupported {
		t.Errorf("%v: exit code %d, want %d", err, exitCode(err), exitUnsupported)
	}
	part, err := loadPart(dir)
	if err != nil || part == nil {
		t.Fatalf("no part: %v", err)
	}
	if !empty(part) || part.Run.Arena != arenaMicroVM || part.Run.Environment[analysis.EmulatedKey] != "true" {
		t.Errorf("%+v", part.Run)
	}
	if err := j.missed(part); err != nil {
		t.Errorf("nothing was asked for by name: %v", err)
	}
	j.wanted = []string{"host", "cilium-netkit"}
	if err := j.missed(part); err == nil || exitCode(err) != exitUnsupported || !strings.Contains(err.Error(), "kernel 6.1 lacks netkit") {
		t.Errorf("%v: want exit code %d and the guest's reason", err, exitUnsupported)
	}
	rec, err := result.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := assemble(dir, rec, analysis.Options{})
	if len(r.Parts) != 0 || len(r.Unsupported) != 1 || r.Unsupported[0].Reason != "kernel 6.1 lacks netkit" {
		t.Errorf("parts %v, unsupported %v", r.Parts, r.Unsupported)
	}
}

// parsed are the flags of a command line.
func parsed(t *testing.T, args ...string) (*cobra.Command, *runFlags) {
	t.Helper()
	f := &runFlags{given: map[string]bool{}}
	c := f.command()
	if err := c.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	c.Flags().Visit(func(flag *pflag.Flag) { f.given[flag.Name] = true })
	return c, f
}

// What settings writes is what adopt takes back, in a plan of its own.
func TestSettings(t *testing.T) {
	args := []string{"--services=1,100", "--rates=given", "--kernel=6.1", "--accel=tcg", "--vm-cpus=3", "--vm-memory=1G", "--mtu=9000"}
	_, then := parsed(t, args...)
	want := then.settings()
	for flag, value := range map[string]string{
		"services": "1,100", "rates": "given", "kernel": "6.1", "accel": "tcg", "vm-cpus": "3", "vm-memory": "1G", "mtu": "9000",
	} {
		if want[flag] != value {
			t.Errorf("setting %s is %q, want %q", flag, want[flag], value)
		}
	}
	c, now := parsed(t)
	if err := now.adopt(c, want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, now.settings()); diff != "" {
		t.Error(diff)
	}
	// The command line's own guest is preferred.
	c, now = parsed(t, "--kernel=6.12")
	if err := now.adopt(c, want); err != nil {
		t.Fatal(err)
	}
	if now.guest.kernel != "6.12" || now.guest.accel != "tcg" {
		t.Errorf("%+v", now.guest)
	}
	_, plain := parsed(t)
	for flag := range plain.settings() {
		if flag == "services" || strings.HasPrefix(flag, "vm-") || flag == "kernel" {
			t.Errorf("%s was not given, but is in the plan", flag)
		}
	}
}

// A plan sets no flag that is not a setting, nor a guest that can't be.
func TestAdoptRefuses(t *testing.T) {
	for flag, value := range map[string]string{"keep": "true", "out": "/etc", "contenders": "host", "vm-memory": "1", "accel": "yes"} {
		c, f := parsed(t)
		if err := f.adopt(c, map[string]string{flag: value}); err == nil {
			t.Errorf("--%s %s was taken from a plan", flag, value)
		}
	}
}

// No guest is booted for the run directory of somebody else.
func TestOwned(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(owned(dir), owned(filepath.Join(dir, "none"))); err != nil {
		t.Error("one's own:", err)
	}
	foreign := "/" // root's
	if os.Geteuid() == 0 {
		foreign = t.TempDir()
		if err := os.Chown(foreign, 12345, -1); err != nil {
			t.Fatal(err)
		}
	}
	if err := owned(foreign); err == nil || exitCode(err) != exitUsage {
		t.Errorf("%v, want wrong usage", err)
	}
	if _, err := os.Stat(filepath.Join(foreign, "run.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A guest's run goes on in the guest that began it.
func TestSameGuest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	run := runOf(arenaMicroVM, "host")
	run.Plan.Settings = map[string]string{"kernel": "/k/vmlinuz", "modules": "/k/modules", "accel": "tcg", "vm-cpus": "1", "vm-memory": "1G", "mtu": "9000"}
	writeRun(t, dir, run)
	for name, test := range map[string]struct {
		args []string
		want guestFlags
	}{
		"its own":             {nil, guestFlags{"/k/vmlinuz", "/k/modules", "tcg", "1G", 1}},
		"as the command says": {[]string{"--kernel=6.12", "--modules=", "--vm-cpus=2"}, guestFlags{"6.12", "", "tcg", "1G", 2}},
	} {
		c, f := parsed(t, test.args...)
		if err := f.sameGuest(c, dir); err != nil {
			t.Fatal(err)
		}
		if f.guest != test.want || f.mtu != "1500" {
			t.Errorf("%s: %+v with MTU %s, want %+v with 1500", name, f.guest, f.mtu, test.want)
		}
	}
}

// The host's lock keeps two guests off one run directory.
func TestGuestRunIsLocked(t *testing.T) {
	_, found := vm.Lookup("")
	err := vm.Available()
	if err == nil && !found {
		err = errors.New("no kernel here; fetch one with: cnibench vm -- true")
	}
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	writeRun(t, dir, runOf(arenaMicroVM, "host"))
	unlock, err := result.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unlock() }()
	if code, _, stderr := command(t, "run", "--resume", dir); code != exitFailed || !strings.Contains(stderr, result.ErrLocked.Error()) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
