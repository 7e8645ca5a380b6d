package tune

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
)

func TestVariants(t *testing.T) {
	var ids []string
	for _, v := range Variants("host", Request{Settings: []Choice{{Setting: "rps"}, {Setting: "xps"}}, Sysctls: map[string]string{"net.b": "1", "net.a": "2"}}) {
		ids = append(ids, v.ID)
	}
	if diff := cmp.Diff([]string{"host+rps", "host+xps", "host+net.a", "host+net.b", "host+all"}, ids); diff != "" {
		t.Error(diff)
	}
}

func TestJudge(t *testing.T) {
	of := func(contender, metric, better string, ci *analysis.Interval, p float64) analysis.Result {
		r := analysis.Result{Contender: contender, Step: "dts", Metric: metric, Better: better, Ranked: true, Median: 2}
		if contender != "host" {
			r.VsBaseline = &analysis.Comparison{Ratio: 1, CI: ci, P: &p}
		}
		return r
	}
	r := &analysis.Report{Baseline: "host", Steps: []result.Step{{ID: "dts"}}, Results: []analysis.Result{
		of("host", "goodput", "higher", nil, 0),
		of("host+a", "goodput", "higher", &analysis.Interval{1.1, 1.2}, 0.001), of("host+a", "cpu_per_gbit", "lower", &analysis.Interval{1.1, 1.2}, 0.001),
		of("host+b", "goodput", "higher", &analysis.Interval{0.9, 1.2}, 0.5), of("host+b", "cpu_per_gbit", "lower", &analysis.Interval{0.5, 0.9}, 0.02),
		of("host+c", "goodput", "higher", nil, 0.5), of("host+d", "goodput", "higher", &analysis.Interval{1.1, 1.2}, 0.001),
	}}
	samples := []result.Sample{
		{Contender: "host+d", Started: time.Time{}, Notes: []result.Reason{{Code: NothingSet, Text: "d changed nothing: why"}}},
		{Contender: "host+e", Step: "setup", Reasons: []result.Reason{{Text: "of another step"}}},
		{Contender: "host+e", Step: "dts", Reasons: []result.Reason{{Text: "it did not come up: denied"}}},
	}
	var variants []Variant
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		variants = append(variants, Variant{"host+" + name, Request{Settings: []Choice{{Setting: name}}}})
	}
	j := Judge(r, samples, variants)
	var got []string
	for _, e := range j.Differences {
		got = append(got, fmt.Sprintf("%s %s %s %s", e.Variant, e.Metric, e.Verdict, e.Reason))
	}
	// b's 0.02 is 0.06 with two more likely ones left of five.
	want := []string{
		"host+a goodput helped ", "host+a cpu_per_gbit hurt ", "host+b goodput cannot be told apart ",
		"host+b cpu_per_gbit cannot be told apart among so many comparisons one looks like this by chance",
		"host+c goodput too few rounds ", "host+d goodput nothing to set d changed nothing: why", "host+e  no figure to compare it did not come up: denied",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if j.Comparisons != 5 || j.MinRounds != 8 { // 2^(1-8)·5 = 0.04
		t.Errorf("%d comparisons, %d rounds at least", j.Comparisons, j.MinRounds)
	}
	// Six rounds that agree would show one comparison, not five.
	for i := range r.Results {
		if v := r.Results[i].VsBaseline; v != nil && v.P != nil && *v.P == 0.02 {
			v.Pairs = 6
		}
	}
	if e := Judge(r, samples, variants).Differences[3]; e.Verdict != TooFew {
		t.Errorf("%+v", e)
	}
	if minimum := MinRounds(1); minimum != 6 || MinRounds(0) != 0 {
		t.Errorf("one comparison takes %d rounds", minimum)
	}
}

// What the lab can't measure is a setting that there is.
func TestNotInLab(t *testing.T) {
	for name := range notInLab() {
		if _, err := Lookup(name); err != nil {
			t.Error(err)
		}
	}
	if governor.NotInLab() != "" || irq.NotInLab() == "" {
		t.Error("the wrong settings are left out")
	}
}
