package run

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/guest"
	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/result"
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
		"native":        {[]result.Sample{valid}, nil, exit.Done},
		"only the part": {[]result.Sample{invalid, setup}, []result.Sample{valid}, exit.Done},
		"neither":       {[]result.Sample{invalid}, []result.Sample{invalid}, exit.Gate},
		"only set up":   {[]result.Sample{setup}, nil, exit.Gate},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			writeRun(t, dir, runOf("lab", "host"), test.native...)
			if test.part != nil {
				writeRun(t, filepath.Join(dir, PartDir), runOf(MicroVM, "host"), test.part...)
			}
			rec, err := result.Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			got := exit.Done
			if err := NoneValid(dir, rec); err != nil {
				got = exit.Code(err)
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
func (poor) Environment() result.Environment            { return result.Environment{} }
func (poor) Anonymous(text string) string               { return text }
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
	cat, err := LoadCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	j := &Job{request: &Request{Baseline: "host", Out: filepath.Join(dir, PartDir)}, Catalogue: cat, Place: &LabPlace{}, only: []string{"cilium-netkit"}, Plan: whole.Plan}
	j.Plan.Contenders = nil
	if _, _, _, err := j.openStore(t.Context(), guest.New(poor{}), nil); err == nil || exit.Code(err) != exit.Unsupported {
		t.Errorf("%v: exit code %d, want %d", err, exit.Code(err), exit.Unsupported)
	}
	part, err := LoadPart(dir)
	if err != nil || part == nil {
		t.Fatalf("no part: %v", err)
	}
	if !empty(part) || part.Run.Arena != MicroVM || part.Run.Environment[result.EmulatedKey] != "true" {
		t.Errorf("%+v", part.Run)
	}
	if err := j.missed(part); err != nil {
		t.Errorf("nothing was asked for by name: %v", err)
	}
	j.Wanted = []string{"host", "cilium-netkit"}
	if err := j.missed(part); err == nil || exit.Code(err) != exit.Unsupported || !strings.Contains(err.Error(), "kernel 6.1 lacks netkit") {
		t.Errorf("%v: want exit code %d and the guest's reason", err, exit.Unsupported)
	}
	rec, err := result.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := Assemble(dir, rec, analysis.Options{})
	if len(r.Parts) != 0 || len(r.Unsupported) != 1 || r.Unsupported[0].Reason != "kernel 6.1 lacks netkit" {
		t.Errorf("parts %v, unsupported %v", r.Parts, r.Unsupported)
	}
}

// Nobody goes on with the run of somebody else, whatever the arena.
func TestOwned(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(checkOwner(dir), checkOwner(filepath.Join(dir, "none"))); err != nil {
		t.Error("one's own:", err)
	}
	foreign := "/" // root's
	if os.Geteuid() == 0 {
		foreign = t.TempDir()
		if err := os.Chown(foreign, 12345, -1); err != nil {
			t.Fatal(err)
		}
	}
	if err := checkOwner(foreign); err == nil || exit.Code(err) != exit.WrongUsage {
		t.Errorf("%v, want wrong usage", err)
	}
	for _, name := range []string{Auto, Lab, MicroVM, Kube} {
		f := &Request{Arena: name, Resume: foreign, Given: map[string]bool{}}
		if _, err := f.Prepare(); err == nil || exit.Code(err) != exit.WrongUsage || !strings.Contains(err.Error(), "belongs to user") {
			t.Errorf("--arena %s: %v, want wrong usage that names the owner", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(foreign, "run.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A guest's run goes on in the guest that began it.
func TestSameGuest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	run := runOf(MicroVM, "host")
	run.Plan.Settings = map[string]string{"kernel": "/k/vmlinuz", "modules": "/k/modules", "accel": "tcg", "vm-cpus": "1", "vm-memory": "1G", "mtu": "9000"}
	writeRun(t, dir, run)
	for name, test := range map[string]struct {
		given []string
		want  map[string]string
	}{
		"its own":             {nil, map[string]string{"kernel": "/k/vmlinuz", "modules": "/k/modules", "accel": "tcg", "vm-cpus": "1", "vm-memory": "1G"}},
		"as the command says": {[]string{"kernel", "modules", "vm-cpus"}, map[string]string{"accel": "tcg", "vm-memory": "1G"}},
	} {
		set := map[string]string{}
		f := &Request{Arena: Auto, Given: map[string]bool{}, Set: func(flag, value string) error { set[flag] = value; return nil }}
		for _, flag := range test.given {
			f.Given[flag] = true
		}
		if err := f.adoptGuest(dir); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, set); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// lacking is an arena that has no nft, and a user who may not load eBPF programs.
type lacking struct{ poor }

func (lacking) Supports(_ context.Context, c *contender.Contender) error {
	switch c.ID {
	case "host", "macvlan":
		return nil
	case "cilium":
		return &arena.Unsupported{Reason: "this user may not use ebpf-tc", Remedy: "run it as root", OtherKernel: true, Denied: true}
	}
	return &arena.Unsupported{Reason: "nft: program not found", Remedy: "install it with: apt-get install nftables", Program: true}
}

// A missing program, or right of this user, leaves out the contender that needs it; the run ends with
// exit code 3 only where no other contender was asked for.
func TestMissingProgramLeavesOut(t *testing.T) {
	cat, err := LoadCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	enlist := func(wanted ...string) (*result.Run, error) {
		run := &result.Run{Baseline: "host"}
		j := &Job{request: &Request{Baseline: "host"}, Catalogue: cat, Place: &LabPlace{}, Wanted: wanted}
		return run, j.enlist(t.Context(), lacking{}, run)
	}
	run, err := enlist("calico-noencap", "cilium", "macvlan")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, entry := range run.Plan.Contenders {
		ids = append(ids, entry.ID)
	}
	if run.Plan.Rounds != 9 {
		t.Errorf("%d rounds for two contenders, want 9", run.Plan.Rounds)
	}
	left := []result.Unsupported{
		{Contender: "calico-noencap", Reason: "nft: program not found", Remedy: "install it with: apt-get install nftables"},
		{Contender: "cilium", Reason: "this user may not use ebpf-tc", Remedy: "run it as root, or run it in a guest: --arena microvm", OtherKernel: true},
	}
	if diff := cmp.Diff([]string{"host", "macvlan"}, ids) + cmp.Diff(left, run.Unsupported); diff != "" {
		t.Error(diff)
	}
	if _, err := enlist("calico-noencap", "cilium"); exit.Code(err) != exit.Unsupported || !strings.Contains(err.Error(), "apt-get install nftables") {
		t.Errorf("%v: want exit code %d and the package", err, exit.Unsupported)
	}
}
