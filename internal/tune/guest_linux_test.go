package tune

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/testutil/vmtest"
)

func TestMain(m *testing.M) {
	if vm.IsInit() {
		vm.Init()
	}
	os.Exit(m.Run())
}

// Real network cards, in a guest: virtio's with two queues, and Intel's e1000
// with rings whose size can be set, before four CPUs.

// ownChoice are files that the kernel writes: where it delivers an interrupt
// among the CPUs that it may, and what it counts and adapts.
var ownChoice = regexp.MustCompile(`/(effective_affinity|spurious|byte_queue_limits/)`)

// cards is everything of the interfaces, the interrupts and the network's
// sysctls that can be set.
func cards(t *testing.T, m *Machine, nics ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	roots := []string{"/proc/sys/net", "/proc/irq"}
	for _, nic := range nics {
		rings, err := m.NICs.Rings(nic)
		if err != nil {
			t.Fatal(err)
		}
		features, err := m.NICs.Features(nic)
		if err != nil {
			t.Fatal(err)
		}
		all[nic] = fmt.Sprint(rings, features)
		roots = append(roots, netClass+nic+"/queues")
	}
	for _, root := range roots {
		err := filepath.Walk(root+"/", func(path string, info os.FileInfo, err error) error {
			if err != nil || info.IsDir() || ownChoice.MatchString(path) {
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
	}
	return all
}

func TestCardsInGuest(t *testing.T) {
	if !vmtest.Inside(t, "virtio-net-pci", "e1000") {
		return
	}
	const virtio, intel = "eth0", "eth1"
	m, err := LocalMachine()
	if err != nil {
		t.Fatal(err)
	}
	for _, nic := range []string{virtio, intel} {
		// So that there is something to switch on.
		if err := m.NICs.SetFeature(nic, "rx-gro", false); err != nil {
			t.Fatal(err)
		}
		ip(t, "link", "set", nic, "up")
	}
	before := cards(t, m, virtio, intel)
	f, err := Gather(t.Context(), m, []string{virtio, intel})
	if err != nil {
		t.Fatal(err)
	}
	var wanted []Wanted
	for _, name := range []string{"governor", "rings", "irq", "rps", "xps", "rfs", "offloads"} {
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
	for _, item := range items {
		want := StateChange
		if item.Setting.Name == "governor" {
			want = StateNotApplicable
			if !strings.Contains(item.Reason, "no CPU has a frequency governor") {
				t.Errorf("governor: %q", item.Reason)
			}
		}
		if item.State != want {
			t.Errorf("%s: %s, want %s: %s", item.Setting.Name, item.State, want, item.Reason)
		}
	}
	if diff := cmp.Diff(before, cards(t, m, virtio, intel)); diff != "" {
		t.Errorf("planning changed: %s", diff)
	}

	j := journalOf(t, m, t.TempDir())
	made, failed, err := Apply(t.Context(), m, j, items)
	if err != nil || len(failed) > 0 || len(made) == 0 {
		t.Fatal(made, failed, err)
	}
	// Not asked of cnibench, but of the kernel.
	after := cards(t, m, virtio, intel)
	for what, differs := range map[string]string{
		"rings and offloads of e1000": intel, "offloads of virtio": virtio,
		"RPS": netClass + virtio + "/queues/rx-1/rps_cpus", "RFS": netClass + intel + "/queues/rx-0/rps_flow_cnt",
		"XPS": netClass + virtio + "/queues/tx-0/xps_cpus", "RFS's table": "/proc/sys/net/core/rps_sock_flow_entries",
	} {
		if after[differs] == before[differs] {
			t.Errorf("%s: %s is still %q", what, differs, after[differs])
		}
	}
	if r, err := m.NICs.Rings(intel); err != nil || r.RX != r.MaxRX || r.TX != r.MaxTX || r.MaxRX == 0 {
		t.Errorf("rings of %s: %+v, %v", intel, r, err)
	}
	for _, n := range f.NICs {
		if len(n.IRQs) == 0 {
			t.Errorf("%s has no interrupts", n.Name)
		}
		for _, i := range n.IRQs {
			path := fmt.Sprintf("/proc/irq/%d/smp_affinity_list", i.Number)
			if cpus := strings.TrimSpace(after[path]); len(cpus) != 1 {
				t.Errorf("interrupt %d of %s goes to CPUs %s", i.Number, n.Name, cpus)
			}
		}
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
	if diff := cmp.Diff(before, cards(t, m, virtio, intel)); diff != "" {
		t.Errorf("not as before: %s", diff)
	}
}
