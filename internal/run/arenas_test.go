package run

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/arena"
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

// poor is an arena that runs the baseline alone.
type poor struct{ arena.Arena }

func (poor) Name() string                               { return "lab" }
func (poor) Environment() result.Environment            { return nil }
func (poor) MaxUp() int                                 { return 9 }
func (poor) Slice() (lead, length time.Duration)        { return time.Millisecond, time.Second }
func (poor) Variant(*contender.Contender) string        { return "switch" }
func (poor) HasPath(*contender.Contender, string) error { return nil }
func (poor) Supports(_ context.Context, c *contender.Contender) error {
	if c.ID == "host" {
		return nil
	}
	return &arena.Unsupported{Reason: "kernel 6.1 lacks netkit", Remedy: "boot a newer one", OtherKernel: true}
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
		f := &Request{Rates: "auto", Arena: name, Resume: foreign, Given: map[string]bool{}}
		if _, err := f.Prepare(); err == nil || exit.Code(err) != exit.WrongUsage || !strings.Contains(err.Error(), "belongs to user") {
			t.Errorf("--arena %s: %v, want wrong usage that names the owner", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(foreign, "run.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A guest's run goes on in the guest that began it, unless the command line says otherwise.
func TestSameGuest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	run := runOf(MicroVM, "host")
	run.Plan.Settings = map[string]string{"kernel": "/k/vmlinuz", "modules": "/k/modules", "accel": "tcg", "vm-cpus": "1", "vm-memory": "1G", "mtu": "9000"}
	writeRun(t, dir, run)
	for name, test := range map[string]struct {
		given string
		want  Guest
	}{
		"its own":             {"", Guest{Kernel: "/k/vmlinuz", Modules: "/k/modules", Accel: "tcg", CPUs: 1, Memory: "1G"}},
		"as the command says": {"kernel,modules,vm-cpus", Guest{Accel: "tcg", Memory: "1G"}},
	} {
		f := &Request{Rates: "auto", Arena: Auto, Resume: dir, Given: map[string]bool{}}
		for flag := range strings.SplitSeq(test.given, ",") {
			f.Given[flag] = true
		}
		j := &Job{request: f}
		if err := j.loadResumed(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, f.Guest); diff != "" || f.Arena != MicroVM || f.MTU != "9000" {
			t.Errorf("%s: arena %s, MTU %s %s", name, f.Arena, f.MTU, diff)
		}
	}
}

// A run without contenders, as earlier versions wrote it for a guest that can run none, is
// not resumed.
func TestNothingToResume(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	writeRun(t, dir, runOf(MicroVM))
	f := &Request{Rates: "auto", Arena: Auto, Resume: dir}
	if _, err := f.Prepare(); exit.Code(err) != exit.WrongUsage || !strings.Contains(err.Error(), "begin a new run") {
		t.Errorf("%v, want wrong usage", err)
	}
}

// Contenders that this kernel lacks the features for are left out. Named alone, or with
// --arena lab, they are an error.
func TestOtherKernel(t *testing.T) {
	for name, test := range map[string]struct {
		arena  string
		wanted []string
		code   int
	}{
		"all that are supported": {Auto, nil, exit.Done},
		"beside another":         {Auto, []string{"macvlan", "cilium-netkit"}, exit.Done},
		"alone":                  {Auto, []string{"cilium-netkit"}, exit.Unsupported},
		"beside the baseline":    {Auto, []string{"host", "cilium-netkit"}, exit.Unsupported},
		"in this lab alone":      {Lab, []string{"macvlan", "cilium-netkit"}, exit.Unsupported},
	} {
		run, err := enlisted(t, oldKernel{}, test.arena, test.wanted)
		if exit.Code(err) != test.code {
			t.Errorf("%s: exit code %d (%v), want %d", name, exit.Code(err), err, test.code)
		}
		if err == nil && !slices.ContainsFunc(run.Unsupported, func(u result.Unsupported) bool { return u.Contender == "cilium-netkit" && u.OtherKernel }) {
			t.Errorf("%s: unsupported %v", name, run.Unsupported)
		}
	}
}

// The command for what needs another kernel is this one's, in a guest.
func TestCommandForGuest(t *testing.T) {
	f := &Request{Arena: Auto, Suite: "latency", Changes: []string{"a.b=1", "c.d=2"}, Contenders: "all", Out: "x", CPUs: "client=0",
		Given: map[string]bool{"suite": true, "set": true, "contenders": true, "out": true, "cpus": true}}
	want := "cnibench run --arena microvm --contenders cilium-netkit,x --suite=latency --set=a.b=1 --set=c.d=2"
	if got := f.inGuest([]string{"cilium-netkit", "x"}); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func enlisted(t *testing.T, a arena.Arena, arenaName string, wanted []string) (*result.Run, error) {
	t.Helper()
	cat, err := LoadCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	j := &Job{request: &Request{Arena: arenaName}, Venue: &labVenue{}, Catalogue: cat, candidates: cat.Contenders, named: wanted != nil}
	j.Record.Baseline = "host"
	if j.named {
		if j.candidates, err = cat.Pick(wanted); err != nil {
			t.Fatal(err)
		}
	}
	s, err := surveyArena(t.Context(), a, cat.Contenders, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &j.Record, j.complete(s, nil)
}

// oldKernel is an arena that runs host and macvlan alone.
type oldKernel struct{ poor }

func (oldKernel) Supports(ctx context.Context, c *contender.Contender) error {
	if c.ID == "macvlan" {
		return nil
	}
	return poor{}.Supports(ctx, c)
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
	enlist := func(wanted ...string) (*result.Run, error) { return enlisted(t, lacking{}, Auto, wanted) }
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
