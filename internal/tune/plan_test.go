package tune

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// planOf plans settings on a machine.
func planOf(t testing.TB, m *Machine, names ...string) []Item {
	t.Helper()
	f, err := Gather(t.Context(), m, nil)
	if err != nil {
		t.Fatal(err)
	}
	var wanted []Wanted
	for _, name := range names {
		s, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		wanted = append(wanted, Wanted{Setting: s})
	}
	items, err := Plan(f, wanted)
	if err != nil {
		t.Fatal(err)
	}
	return items
}

func allNames() []string {
	var names []string
	for _, s := range All() {
		names = append(names, s.Name)
	}
	return names
}

// The masks of the 2016 study come out of its machines' topology.
func TestStudy2016(t *testing.T) {
	m, _ := build(t, shapes["study-2016"])
	got := map[string]string{}
	for _, item := range planOf(t, m, "irq", "rps", "xps", "rfs", "sched-migration-cost") {
		for _, c := range item.Changes {
			got[c.String()] = c.To
		}
	}
	want := map[string]string{
		"/proc/irq/265/smp_affinity_list":              "0",
		"/proc/irq/266/smp_affinity_list":              "9",
		"/sys/class/net/eth0/queues/rx-0/rps_cpus":     "00000000,0003fdfe",
		"/sys/class/net/eth0/queues/rx-1/rps_cpus":     "00000000,0003fdfe",
		"/sys/class/net/eth0/queues/tx-0/xps_cpus":     "00000000,07fc01ff",
		"/sys/class/net/eth0/queues/tx-1/xps_cpus":     "0000000f,f803fe00",
		"net.core.rps_sock_flow_entries":               "65536",
		"/sys/class/net/eth0/queues/rx-0/rps_flow_cnt": "32768",
		"/sys/class/net/eth0/queues/rx-1/rps_flow_cnt": "32768",
		"kernel.sched_migration_cost_ns":               "10000000",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Every setting on every shape of machine.
func TestPlans(t *testing.T) {
	for name, s := range shapes {
		t.Run(name, func(t *testing.T) {
			m, root := build(t, s)
			before := snapshot(t, root)
			text := listing(planOf(t, m, allNames()...))
			if diff := cmp.Diff(before, snapshot(t, root)); diff != "" {
				t.Errorf("a plan changed the machine: %s", diff)
			}
			golden(t, "plan-"+name+".txt", text)
		})
	}
}

func listing(items []Item) string {
	var b strings.Builder
	for _, item := range items {
		fmt.Fprintf(&b, "%s: %s", item.Setting.Name, item.State)
		if item.Reason != "" {
			fmt.Fprintf(&b, ": %s", item.Reason)
		}
		b.WriteString("\n")
		for i, c := range item.Changes {
			if i == 4 {
				fmt.Fprintf(&b, "\t… %d changes\n", len(item.Changes))
				break
			}
			fmt.Fprintf(&b, "\t%s: %s → %s\n", c.Place, c.From, c.To)
		}
		for _, a := range item.Advice {
			fmt.Fprintf(&b, "\tdo: %s\n", a)
		}
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (go test -update writes it): %s", path, diff)
	}
}

// Every setting says what a reader needs, and every profile names settings
// and parameters that there are.
func TestCatalogue(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range All() {
		if seen[s.Name] {
			t.Errorf("%s is there twice", s.Name)
		}
		seen[s.Name] = true
		if s.Summary == "" || s.Why == "" || s.Source == "" || len(s.Studies) == 0 || s.Plan == nil || s.Scope == "" {
			t.Errorf("%s: something is not said", s.Name)
		}
	}
	for _, p := range Profiles() {
		for _, c := range p.Choices {
			s, err := Lookup(c.Setting)
			if err != nil {
				t.Errorf("%s: %v", p.Name, err)
				continue
			}
			if _, err := s.complete(c.Params); err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
		}
	}
	if _, err := governor.complete(Params{"valeu": "x"}); err == nil || !strings.Contains(err.Error(), `did you mean "value"`) {
		t.Error(err)
	}
}

// smt is planned last, for whatever order it was asked for; steering prefers first threads.
func TestSMTLast(t *testing.T) {
	m, _ := build(t, shapes["study-2016"])
	items := planOf(t, m, "smt", "rps")
	if items[1].Setting.Name != "smt" || items[1].State != StateChange || items[0].Changes[0].To != "00000000,0003fdfe" {
		t.Errorf("%s", listing(items))
	}
}

// CPUs that were set offline by hand would not be offline after revert. Those that could
// be plugged in are nobody's doing.
func TestSMTOffline(t *testing.T) {
	for name, c := range map[string]struct {
		present, online, offline string
		want                     State
	}{
		"all online":    {"0-7", "0-7", "", StateChange},
		"by hand":       {"0-7", "0-5,7", "6", StateNotApplicable},
		"to be plugged": {"0-7", "0-7", "8-127", StateChange},
		"both":          {"0-7", "0-5", "6-127", StateNotApplicable},
		"no such list":  {"", "0-7", "", StateChange},
	} {
		t.Run(name, func(t *testing.T) {
			m, root := build(t, shapes["laptop"])
			w := writer{t, root}
			if c.present != "" {
				w.file("sys/devices/system/cpu/present", c.present)
			}
			w.file("sys/devices/system/cpu/online", c.online)
			w.file("sys/devices/system/cpu/offline", c.offline)
			item := planOf(t, m, "smt")[0]
			if item.State != c.want || (item.State == StateNotApplicable) != strings.Contains(item.Reason, "CPUs 6") {
				t.Errorf("%s", listing([]Item{item}))
			}
		})
	}
}

// Keys that the kernel changes others with are refused, however they are written.
func TestSysctlRefused(t *testing.T) {
	for name, refused := range map[string]bool{
		"vm.dirty_bytes":                   true,
		"vm.dirty_ratio":                   true,
		"vm/dirty_ratio":                   true,
		"vm.dirty_background_bytes":        true,
		"vm.dirty_background_ratio":        true,
		"vm.overcommit_kbytes":             true,
		"vm.overcommit_ratio":              true,
		"net.ipv4.ip_forward":              true,
		"net/ipv4/ip_forward":              true,
		"net.ipv4.conf.all.forwarding":     true,
		"net.ipv6.conf.all.forwarding":     true,
		"net.ipv6.conf.all.disable_ipv6":   true,
		"net.ipv6.conf.eth0.disable_ipv6":  false,
		"net.ipv4.conf.default.forwarding": false,
		"vm.overcommit_memory":             false,
		"vm.swappiness":                    false,
	} {
		_, err := Sysctl(name, "1")
		if refused != (err != nil) || refused && !strings.Contains(err.Error(), name+": setting it changes other keys") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An empty list is a value like others.
func TestSysctlEmpty(t *testing.T) {
	m, root := build(t, shapes["laptop"])
	(writer{t, root}).file("proc/sys/net/ipv4/ip_local_reserved_ports", "")
	before := snapshot(t, root)
	f, err := Gather(t.Context(), m, nil)
	if err != nil {
		t.Fatal(err)
	}
	items, err := Plan(f, []Wanted{{Setting: must(Sysctl("net.ipv4.ip_local_reserved_ports", "2379,30000-32767"))}})
	if err != nil {
		t.Fatal(err)
	}
	j := journalOf(t, m, t.TempDir())
	made, failed, err := Apply(t.Context(), m, j, items)
	if err != nil || len(failed) > 0 || len(made) != 1 || made[0].To != "2379,30000-32767" {
		t.Fatal(made, failed, err)
	}
	if r, err := Revert(t.Context(), m, j, 0, false); err != nil || len(r.Restored) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if diff := cmp.Diff(before, snapshot(t, root)); diff != "" {
		t.Error(diff)
	}
}

// A second run of a setting finds its work done.
func TestDone(t *testing.T) {
	m, root := build(t, shapes["laptop"])
	w := writer{t, root}
	w.file("proc/sys/fs/file-max", "9223372036854775807") // larger is as good
	w.file("proc/sys/net/ipv4/tcp_fin_timeout", "10")
	for _, item := range planOf(t, m, "file-max", "fin-timeout") {
		if item.State != StateDone {
			t.Errorf("%s", listing([]Item{item}))
		}
	}
}
