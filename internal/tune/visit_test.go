package tune

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What the machine has is set until it is taken back, to the last value.
func TestSetMachine(t *testing.T) {
	m, root := build(t, shapes["laptop"])
	w := writer{t, root}
	w.file("proc/sys/fs/file-max", "2000000")
	if err := os.Remove(w.path("proc/sys/kernel/sched_migration_cost_ns")); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, root)
	j := journalOf(t, m, filepath.Join(t.TempDir(), "state"))
	a, err := SetMachine(t.Context(), m, j, Request{Settings: []Choice{{Setting: "governor"}, {Setting: "file-max"}, {Setting: "sched-migration-cost"}}})
	if err != nil {
		t.Fatal(err)
	}
	if a.Made == 0 || a.Left["file-max"] != "it is so already" || a.Left["sched-migration-cost"] == "" || a.Left["governor"] != "" {
		t.Errorf("%+v", a)
	}
	if got := snapshot(t, root)["/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"]; got != "performance\n" {
		t.Errorf("governor %q", got)
	}
	if err := TakeBack(t.Context(), m, j, a.Mark); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, snapshot(t, root)); diff != "" {
		t.Error(diff)
	}
	if _, err := SetMachine(t.Context(), m, j, Request{Settings: []Choice{{Setting: "no-such"}}}); err == nil {
		t.Error("an unknown setting")
	}
}
