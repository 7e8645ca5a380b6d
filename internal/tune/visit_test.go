package tune

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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
	if a.Made == 0 || a.Left["file-max"] == "" || a.Left["sched-migration-cost"] == "" || a.Left["governor"] != "" {
		t.Errorf("%+v", a)
	}
	if got := snapshot(t, root)["/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"]; got != "performance\n" {
		t.Errorf("governor %q", got)
	}
	if err := RevertTo(t.Context(), m, j, a.Mark); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, snapshot(t, root)); diff != "" {
		t.Error(diff)
	}
	if _, err := SetMachine(t.Context(), m, j, Request{Settings: []Choice{{Setting: "no-such"}}}); err == nil {
		t.Error("an unknown setting")
	}
}

// What an administrator applied meanwhile stays, also where the journal was empty between.
func TestRevertBy(t *testing.T) {
	m, root := build(t, shapes["laptop"])
	j := journalOf(t, m, filepath.Join(t.TempDir(), "state"))
	applyAll(t, m, j, "slow-start-idle")
	j.By = "bench-1"
	applyAll(t, m, j, "tw-reuse")
	j.By = ""
	applyAll(t, m, j, "fin-timeout")
	applied := snapshot(t, root)
	if err := RevertBy(t.Context(), m, j, "bench-1"); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range j.Entries() {
		left = append(left, e.Setting)
	}
	if diff := cmp.Diff([]string{"slow-start-idle", "fin-timeout"}, left); diff != "" {
		t.Error(diff)
	}
	after := snapshot(t, root)
	const reuse = "/proc/sys/net/ipv4/tcp_tw_reuse"
	if after[reuse] == applied[reuse] {
		t.Error("the bench's value was not taken back")
	}
	applied[reuse] = after[reuse]
	if diff := cmp.Diff(applied, after); diff != "" {
		t.Error(diff)
	}
}

// What could not be set or taken back is named, each with its cause.
func TestTakeBackFails(t *testing.T) {
	m, root := build(t, shapes["laptop"])
	j := journalOf(t, m, filepath.Join(t.TempDir(), "state"))
	req := Request{Settings: []Choice{{Setting: "fin-timeout"}, {Setting: "tw-reuse"}, {Setting: "slow-start-idle"}}}
	a, err := SetMachine(t.Context(), m, j, req)
	if err != nil {
		t.Fatal(err)
	}
	(writer{t, root}).file("proc/sys/net/ipv4/tcp_tw_reuse", "0")
	files := m.Files
	m.Files = refusing{refusing{files, "tcp_fin_timeout"}, "tcp_slow_start_after_idle"}
	err = RevertTo(t.Context(), m, j, a.Mark)
	wantError(t, err, "tcp_fin_timeout", "tcp_slow_start_after_idle", "net.ipv4.tcp_tw_reuse was set to 1, and somebody has set it to 0", "tune status")
	if !errors.Is(err, syscall.EINVAL) {
		t.Error(err)
	}
	m.Files = files
	if _, err := Revert(t.Context(), m, j, 0, true); err != nil {
		t.Fatal(err)
	}
	m.Files = refusing{refusing{files, "tcp_fin_timeout"}, "tcp_slow_start_after_idle"}
	_, err = SetMachine(t.Context(), m, j, req)
	wantError(t, err, "setting fin-timeout: ", "setting slow-start-idle: ")
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("want %q in: %v", part, err)
		}
	}
}
