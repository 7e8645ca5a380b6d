package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/tune"
)

// A bench names what it could not take back, and nothing that was applied
// before it.
func TestBenchLeaves(t *testing.T) {
	root := t.TempDir()
	keys := []string{"net.ipv4.tcp_fin_timeout", "vm.swappiness"}
	for _, key := range keys {
		path := filepath.Join(root, "proc/sys", strings.ReplaceAll(key, ".", "/"))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("60\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m := &tune.Machine{Files: host.Tree(root)}
	j, err := tune.OpenJournal(filepath.Join(root, "state"), m.BootID())
	if err != nil {
		t.Fatal(err)
	}
	apply := func(key string) {
		t.Helper()
		s, err := tune.Sysctl(key, "10")
		if err != nil {
			t.Fatal(err)
		}
		place := tune.Place{Kind: tune.File, Name: "/proc/sys/" + strings.ReplaceAll(key, ".", "/")}
		item := tune.Item{Setting: s, Proposal: tune.Proposal{Changes: []tune.Change{{Place: place, From: "60", To: "10"}}}}
		if _, failed, err := tune.Apply(t.Context(), m, j, []tune.Item{item}); err != nil || failed != nil {
			t.Fatal(failed, err)
		}
	}
	apply(keys[0])
	tuning := machineTuning{journal: j, before: len(j.Entries())}
	apply(keys[1])
	if err := tuning.close(); err == nil || err.Error() != "not taken back: vm.swappiness" {
		t.Error(err)
	}
}

// An interrupted bench points at a report only where there is a run.
func TestBenchInterrupted(t *testing.T) {
	if err := newInterrupted(filepath.Join(t.TempDir(), "run")); strings.Contains(err.Error(), "report") {
		t.Error(err)
	}
	const dir = "../../result/testdata/v1"
	if err := newInterrupted(dir); !strings.HasSuffix(err.Error(), "cnibench report "+dir) {
		t.Error(err)
	}
}
