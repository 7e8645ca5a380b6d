package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/result"
)

// Several runs of one kind say where the ratios of a further one would lie; runs of different
// kinds, and a run given twice, are refused.
func TestRunsTogether(t *testing.T) {
	after := func(span time.Duration) func(*result.Run) {
		return func(r *result.Run) { r.Started = r.Started.Add(span) }
	}
	dirs := map[string]string{
		"MON": frozen(t, "mon", 1, 1, nil), "TUE": frozen(t, "tue", 2, 0.9, after(24*time.Hour)), "WED": frozen(t, "wed", 3, 1.1, after(48*time.Hour)),
		"SOON": frozen(t, "soon", 5, 1, after(5*time.Minute)), "TWO": frozenTwo(t, "two", 4, 1),
	}
	for _, c := range []told{
		{"report MON TUE WED", 0, "by these 3 runs", ""},
		{"report MON TUE WED --format json", 0, `"source": "own"`, ""},
		{"report MON TUE WED --format md", 0, "Another hour of this machine", ""},
		{"report MON TUE WED --format html", 0, "Another hour of this machine", ""},
		{"report MON", 0, "flannel-vxlan", ""},
		{"report MON MON TUE", 2, "", "each once"},
		{"report MON TWO", 2, "", "the arenas differ"},
		{"recommend MON TUE WED", 0, "first in these 3 runs: calico-noencap in 3", ""},
		{"recommend MON MON", 2, "", "each once"},
	} {
		c.check(t, dirs)
	}
	for _, few := range [][]string{{"report", dirs["MON"]}, {"report", dirs["MON"], dirs["SOON"], dirs["TUE"]}} { // five minutes later is no other hour
		if _, out, _ := command(t, few...); strings.Contains(out, "Another ") {
			t.Errorf("%v: steps that the project's runs lack have a prediction", few)
		}
	}
}

// --repeat makes folders of one run each, and seeds that differ.
func TestRepeated(t *testing.T) {
	_, f := parsed(t, "--repeat=3", "--spread=1h", "--out=o", "--seed=7")
	list, err := f.repeatRuns()
	if err != nil || len(list) != 3 || list[2].Out != "o/3" || list[2].Seed != 9 {
		t.Fatalf("%d runs, %v", len(list), err)
	}
	for _, args := range [][]string{{"--repeat=0"}, {"--spread=1h"}, {"--repeat=2", "--spread=-1s"}, {"--repeat=2", "--resume=x"}} {
		if _, f := parsed(t, args...); func() bool { _, err := f.repeatRuns(); return err == nil }() {
			t.Errorf("%v is accepted", args)
		}
	}
}
