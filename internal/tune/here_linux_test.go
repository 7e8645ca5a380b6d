package tune

//make:alone 5

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// The real kernel: a process in a network namespace of its own, with a veth
// pair, applies and reverts what namespaces have.

const hereEnv = "CNIBENCH_TUNE_HERE"

// inNamespace runs this test again in a network namespace that ends with it,
// and says whether this is that run.
func inNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(hereEnv) == t.Name() {
		return true
	}
	// As in the lab: a first process in one namespace, this test in another.
	unshare := []string{"--pid", "--fork", "--mount-proc", "--net"}
	if os.Geteuid() != 0 {
		unshare = append(unshare, "--user", "--map-root-user")
	}
	if out, err := exec.Command("unshare", append(unshare, "true")...).CombinedOutput(); err != nil {
		needs.Missing(t, fmt.Sprintf("makes namespaces (%v: %s); run it as root", err, out))
	}
	cmd := exec.Command("unshare", append(unshare, "sh", "-c", `unshare --net "$@"; exit $?`, "sh", os.Args[0], "-test.run=^"+t.Name()+"$")...)
	cmd.Env = append(os.Environ(), hereEnv+"="+t.Name())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return false
}

// rootless says that root of this namespace is an ordinary user outside, whom
// the kernel does not let set RPS.
func rootless(t *testing.T) bool {
	t.Helper()
	b, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		t.Fatal(err)
	}
	return tidy(string(b)) != "0 0 4294967295"
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %v: %v: %s", args, err, out)
	}
}

// state is everything that the settings could touch in this namespace.
func state(t *testing.T, m *Machine) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir("/proc/sys/net", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if b, err := os.ReadFile(path); err == nil { // some are write only
			all[path] = string(b)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, nic := range []string{"v0", "v1"} {
		for _, queue := range []string{"rx-0/rps_cpus", "rx-0/rps_flow_cnt"} {
			name := netClass + nic + "/queues/" + queue
			b, err := m.Files.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all[name] = string(b)
		}
		features, err := m.NICs.Features(nic)
		if err != nil {
			t.Fatal(err)
		}
		all["features of "+nic] = fmt.Sprint(features)
	}
	rules, err := exec.Command("nft", "list", "ruleset").CombinedOutput()
	if err != nil {
		t.Fatalf("nft: %v: %s", err, rules)
	}
	all["nft"] = string(rules)
	// They count, or are the kernel's own.
	delete(all, "/proc/sys/net/netfilter/nf_conntrack_count")
	return all
}

func TestRealApplyRevert(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	ip(t, "link", "add", "v0", "numrxqueues", "4", "numtxqueues", "4", "type", "veth", "peer", "name", "v1")
	ip(t, "link", "set", "v0", "up")
	m, err := ThisNamespace(false)
	if err != nil {
		t.Fatal(err)
	}
	before := state(t, m)
	f, err := Gather(t.Context(), m, nil)
	if err != nil {
		t.Fatal(err)
	}
	var wanted []Wanted
	for _, s := range All() {
		if s.Scope == ScopeNamespace && (s.Name != "rps" || !rootless(t)) {
			w := Wanted{Setting: s}
			if s.Name == "notrack" {
				w.Params = Params{"ports": "80,5201-5210"}
			}
			wanted = append(wanted, w)
		}
	}
	items, err := Plan(f, wanted)
	if err != nil {
		t.Fatal(err)
	}
	j := journalOf(t, m, t.TempDir())
	made, failed, err := Apply(t.Context(), m, j, items)
	if err != nil || len(failed) > 0 {
		t.Fatal(failed, err)
	}
	touched := map[string]bool{}
	for _, e := range j.Entries() {
		touched[e.Setting] = true
	}
	for _, name := range []string{"offloads", "local-ports", "notrack", "socket-buffers"} {
		if !touched[name] {
			t.Errorf("%s changed nothing: %s", name, listing(items))
		}
	}
	if cmp.Equal(before, state(t, m)) {
		t.Fatal("nothing was changed")
	}
	for _, s := range StatusOf(t.Context(), m, j) {
		if s.State != ChangeApplied {
			t.Errorf("%s is %s: set to %s, reads %s", s.Place, s.State, s.To, s.Now)
		}
	}
	r, err := Revert(t.Context(), m, j, 0, false)
	if err != nil || len(r.Kept)+len(r.Failed) > 0 || len(r.Restored) != len(made) {
		t.Fatalf("%+v, %v", r, err)
	}
	if diff := cmp.Diff(before, state(t, m)); diff != "" {
		t.Errorf("not as before: %s", diff)
	}
}

// The machine's own values are out of reach from a namespace, and said so.
func TestRealSetNamespace(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	ip(t, "link", "add", "v0", "type", "veth", "peer", "name", "v1")
	m, err := ThisNamespace(false)
	if err != nil {
		t.Fatal(err)
	}
	a, err := SetNamespace(t.Context(), m, Request{
		Settings: []Choice{{Setting: "rps"}, {Setting: "governor"}, {Setting: "socket-limits"}, {Setting: "xps"}},
		Sysctls:  map[string]string{"net.ipv4.tcp_rmem": "4096,4096,8192", "net.core.rmem_max": "1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"governor", "socket-limits", "net.core.rmem_max"} {
		if !strings.Contains(a.Left[name], "of its own") {
			t.Errorf("%s: %q", name, a.Left[name])
		}
	}
	want := ""
	if rootless(t) {
		want = "the kernel lets only the machine's own root set it: run it as root"
	}
	if a.Left["rps"] != want || a.Made < 1 {
		t.Errorf("%+v", a)
	}
	if got, err := m.Read(t.Context(), sysctl("net.ipv4.tcp_rmem")); err != nil || tidy(got) != "4096 4096 8192" {
		t.Errorf("%q, %v", got, err)
	}
}

// The machine's own namespace is not one to throw away.
func TestHereRefuses(t *testing.T) {
	if _, err := ThisNamespace(false); err == nil {
		t.Error("the machine's own namespace was accepted")
	}
	m := &Machine{Files: host.Tree(t.TempDir())}
	if _, err := SetNamespace(t.Context(), m, Request{}); err == nil {
		t.Error("a machine was taken for a namespace")
	}
}
