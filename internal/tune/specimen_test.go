package tune

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// specimens are the state folders that released versions have left, each in the middle
// of an apply: set and read back, taken back, set by a crash's last step, and half of a
// line.
func specimens(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob("testdata/journal-*")
	if err != nil || len(dirs) == 0 {
		t.Fatal(dirs, err)
	}
	return dirs
}

// The journal of every version that was ever released is read, and taken back, whatever
// the settings are called today.
func TestJournalSpecimens(t *testing.T) {
	for _, dir := range specimens(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			m, root := build(t, shapes["laptop"])
			before := snapshot(t, root)
			w := writer{t, root}
			w.file("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance")
			w.file("proc/sys/net/ipv4/ip_local_port_range", "2000\t65535")
			w.file("proc/sys/net/ipv4/tcp_fin_timeout", "10")
			state := t.TempDir()
			if err := os.CopyFS(state, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			j := journalOf(t, m, state)
			var standing []string
			for _, s := range StatusOf(t.Context(), m, j) {
				standing = append(standing, s.Setting+" "+string(s.State))
			}
			if diff := cmp.Diff([]string{"governor applied", "local-ports applied", "fin-timeout applied"}, standing); diff != "" {
				t.Error(diff)
			}
			applyAll(t, m, j, "tw-reuse") // this version goes on in it
			r, err := Revert(t.Context(), m, j, 0, false)
			if err != nil || len(r.Restored) != 4 || HasJournal(state) {
				t.Errorf("%+v, %v", r, err)
			}
			if diff := cmp.Diff(before, snapshot(t, root)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A journal of a version to come is refused, says which this one reads, and stays as
// it is.
func TestJournalOfANewerVersion(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(specimens(t)[0], journalFile))
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(string(text), Schema, "cnibench/tune-journal/2", 1)
	state := t.TempDir()
	path := filepath.Join(state, journalFile)
	if err := os.WriteFile(path, []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = OpenJournal(state, "boot")
	if err == nil || !strings.Contains(err.Error(), "cnibench/tune-journal/2") || !strings.Contains(err.Error(), Schema) {
		t.Error(err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != newer {
		t.Errorf("it was changed: %v", err)
	}
}
