package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/run"
)

// guestDir is the folder in which earlier versions kept, below a run of this kernel, a run
// of another kernel. It is a run of its own.
const guestDir = "microvm"

// frozenTwo is a run that could not run flannel-vxlan, and in it the run of another kernel
// that could, where its goodput is multiplied by slow. Both kernels have the same release.
func frozenTwo(t *testing.T, name string, seed uint64, slow float64) string {
	t.Helper()
	native := frozen(t, name, seed, 1, func(r *result.Run) {
		r.Plan.Contenders, r.Contenders = r.Plan.Contenders[:3], r.Contenders[:3]
		r.Unsupported = []result.Unsupported{{Contender: "flannel-vxlan", Reason: "kernel lacks vxlan", OtherKernel: true}}
	})
	guest := frozen(t, guestDir, seed+100, slow, func(r *result.Run) {
		r.Arena, r.Environment[result.EmulatedKey], r.Started = run.MicroVM, "true", r.Started.Add(time.Hour)
		r.Plan.Contenders = []result.Entry{r.Plan.Contenders[0], r.Plan.Contenders[3]}
		r.Contenders = []result.ContenderInfo{r.Contenders[0], r.Contenders[3]}
	})
	if err := os.Rename(guest, filepath.Join(native, guestDir)); err != nil {
		t.Fatal(err)
	}
	return native
}

// TestRunsOfAFolder: the runs of a folder stand one under the other, and no figure of one is
// compared with a figure of another. So do the run and the part of an earlier version.
func TestRunsOfAFolder(t *testing.T) {
	dirs := map[string]string{
		"OLD": frozenTwo(t, "old", 1, 1), "AGAIN": frozenTwo(t, "again", 2, 1), "SLOW": frozenTwo(t, "slow", 3, 0.5),
		"PLAIN": frozenTwo(t, "plain", 4, 1), "BROKEN": frozen(t, "broken", 5, 1, nil), "FOLDER": filepath.Join(t.TempDir(), "folder"),
	}
	if err := os.RemoveAll(filepath.Join(dirs["PLAIN"], guestDir)); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dirs["BROKEN"], guestDir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dirs["BROKEN"], guestDir, "run.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dirs["FOLDER"], 0o755); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"lab": frozenTwo(t, "b", 6, 1), "microvm": filepath.Join(frozenTwo(t, "c", 7, 1), guestDir)} {
		if err := os.Rename(dir, filepath.Join(dirs["FOLDER"], name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(dirs["FOLDER"], "lab", guestDir)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []told{
		{"compare OLD AGAIN --fail-on 30%", 0, "gate passed", "run 2 of 2"},
		{"compare OLD SLOW --fail-on 30%", 4, "flannel-vxlan dts", "gate failed: 2 of"},
		{"compare OLD PLAIN --fail-on 30%", 4, "", "microvm is missing"},
		{"compare PLAIN OLD --fail-on 30%", 0, "gate passed", "microvm is missing"},
		{"compare OLD BROKEN", 1, "", "microvm/run.json"},
		{"recommend OLD", 0, "kernel 6.18 on an emulated CPU", ""},
		{"report OLD --format csv", 0, `"microvm","microvm","quick","host","flannel-vxlan"`, ""},
		{"report OLD --format openmetrics", 2, "", "several runs"},
		{"report FOLDER --format openmetrics", 2, "", "folder/microvm"},
		{"report FOLDER", 0, "folder/microvm: arena microvm, kernel 6.18", ""},
		{"report FOLDER --format html", 0, "<iframe", ""},
	} {
		c.check(t, dirs)
	}
	_, out, _ := command(t, "report", dirs["FOLDER"], "--format", "json")
	if n := strings.Count(out, `"schema": "cnibench/report/1"`); n != 2 {
		t.Errorf("%d objects, want one for each of two runs", n)
	}
	_, out, _ = command(t, "report", dirs["FOLDER"], "--format", "csv")
	if n := strings.Count(out, "contender,kernel"); n != 1 {
		t.Errorf("%d headers", n)
	}
}
