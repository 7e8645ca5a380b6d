package programs_test

import (
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/contenders"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/host/programs"
	"github.com/cnibench/cnibench/internal/workload"
)

// Each workload has a row, and nothing else has.
func TestWorkloadsHaveRows(t *testing.T) {
	var names []string
	for _, w := range workload.All() {
		names = append(names, w.Info().Name)
	}
	slices.Sort(names)
	if diff := cmp.Diff(names, slices.Sorted(maps.Keys(programs.Workloads()))); diff != "" {
		t.Errorf("workloads, and rows in pieces.yaml: %s", diff)
	}
}

// Debian has a package, or the checkout a target, for every program that a
// contender, a suite or a developer's job runs.
func TestProgramsHavePackages(t *testing.T) {
	for _, name := range programs.Profiles() {
		list, err := programs.Profile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range list {
			if !host.Known(w.Program) {
				t.Errorf("%s of %s has no package in internal/host/packages.txt", w.Program, strings.Join(w.For, ", "))
			}
		}
	}
}

// Packages are named once each, whether they are here or not.
func TestPackages(t *testing.T) {
	list, err := programs.Run("quick", []string{"macvlan", "canal"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"Debian": "containernetworking-plugins iproute2 iptables nftables nginx-light",
		"Fedora": "containernetworking-plugins iproute iproute-tc iptables-legacy iptables-nft nftables nginx-core",
	}
	for _, d := range host.Distributions() {
		if w, ok := want[d.Name]; ok {
			if diff := cmp.Diff(w, strings.Join(list.Packages(d), " ")); diff != "" {
				t.Errorf("%s: %s", d.Name, diff)
			}
		}
	}
}

// What the demo wants, by contender and suite: a row that loses a program
// fails here.
func TestRun(t *testing.T) {
	list, err := programs.Run("quick", []string{"macvlan", "calico-noencap", "flannel-udp"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, w := range list {
		got[w.Program] = strings.Join(w.For, ", ")
	}
	want := map[string]string{
		"nginx":       "suite quick",
		"cni/macvlan": "macvlan", "cni/ptp": "calico-noencap", "cni/host-local": "calico-noencap, flannel-udp, macvlan",
		"cni/bridge":           "flannel-udp",
		"iptables-nft-restore": "calico-noencap, flannel-udp", "iptables-legacy-restore": "calico-noencap, flannel-udp", "nft": "calico-noencap, flannel-udp",
		"flanneld": "flannel-udp", "etcd": "flannel-udp", "iptables": "flannel-udp",
		"ip": "the record of the machine", "tc": "the record of the machine",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for given, run := range map[string]func() error{
		`did you mean "quick"`:  func() error { _, err := programs.Run("quik", nil); return err },
		`did you mean "weave"`:  func() error { _, err := programs.Run("", []string{"weav"}); return err },
		`did you mean "bench-l`: func() error { _, err := programs.Profile("bench-laod"); return err },
	} {
		if err := run(); err == nil || !strings.Contains(err.Error(), given) {
			t.Errorf("%v, want %s", err, given)
		}
	}
}

// A missing program is named with what runs it, and its package once.
func TestInstall(t *testing.T) {
	l := programs.List{
		{Program: "here", Package: "a", Here: true}, {Program: "x", Package: "b"}, {Program: "y", Package: "b"}, {Program: "z", Package: "c"}, {Program: "none"},
	}
	if got, want := l.Install(), host.ThisDistribution().Install("b", "c"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := l[:1].Install(); got != "" {
		t.Errorf("nothing is missing, but: %s", got)
	}
}

// What calls scripts/setup with a profile names one that there is: nothing here runs the
// action and the workflows.
func TestSetupIsCalledWithProfiles(t *testing.T) {
	call := regexp.MustCompile(`scripts/setup ([a-z][a-z-]*)`)
	seen := 0
	for _, pattern := range []string{"action.yml", "Makefile", ".ci/*", ".github/workflows/*", "scripts/*"} {
		files, err := filepath.Glob(filepath.Join("../../..", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			seen += strings.Count(string(text), "scripts/setup")
			for _, m := range call.FindAllStringSubmatch(string(text), -1) {
				if !slices.Contains(programs.Profiles(), m[1]) {
					t.Errorf("%s: %s: no such profile; there are %s", file, m[0], strings.Join(programs.Profiles(), ", "))
				}
			}
		}
	}
	if seen < 3 {
		t.Errorf("scripts/setup was found %d times", seen)
	}
}

// Every contender of the lab names programs that the table knows.
func TestContendersHavePackages(t *testing.T) {
	all, err := contender.Load(contenders.FS)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		for _, p := range programs.Contender(c) {
			if !host.Known(p) {
				t.Errorf("%s runs %s, which has no package in internal/host/packages.txt", c.ID, p)
			}
		}
	}
}

// scripts/setup compiles the program before anything else is there: what takes
// long to compile stays out.
func TestFewImports(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "../../../tools/missing").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range strings.Fields(string(out)) {
		if pkg == "net/http" || path.Base(pkg) == "workload" || strings.Contains(pkg, "netlink") || strings.HasPrefix(pkg, "k8s.io/") {
			t.Errorf("tools/missing imports %s", pkg)
		}
	}
}
