package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/run"
)

// A study whose contenders need two kernels is two runs in one folder, which share the time.
func TestSplitByKernel(t *testing.T) {
	supports := []run.Support{{ID: "host", OK: true}, {ID: "a", OK: true}, {ID: "b", OK: true}, {ID: "n", Guest: true}, {ID: "x"}}
	_, f := parsed(t, "--study=2024", "--out=o", "--max-time=60m", "--cpus=client=0,server=1,rest=0")
	got := f.splitByKernel([]string{"host", "a", "b", "n", "x"}, supports)
	if len(got) != 2 {
		t.Fatalf("%d runs, want 2", len(got))
	}
	type one struct {
		Arena, Out, Contenders, CPUs string
		MaxTime                      time.Duration
	}
	var runs []one
	for _, r := range got {
		runs = append(runs, one{r.Arena, r.Out, r.Contenders, r.CPUs, r.MaxTime})
	}
	want := []one{{run.Lab, "o/lab", "supported", f.CPUs, 40 * time.Minute}, {run.MicroVM, "o/microvm", "n", "", 20 * time.Minute}}
	if diff := cmp.Diff(want, runs); diff != "" {
		t.Error(diff)
	}
	for wanted, arena := range map[string]string{"host,a": run.Auto, "n": run.MicroVM, "host,n": run.MicroVM} {
		_, f := parsed(t, "--study=2024", "--contenders="+wanted)
		if got := f.splitByKernel(strings.Split(wanted, ","), supports); len(got) != 1 || got[0].Arena != arena {
			t.Errorf("%s: %d runs, arena %s", wanted, len(got), got[0].Arena)
		}
	}
}
