package run

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
)

func TestProgress(t *testing.T) {
	plan := &result.Plan{
		Rounds: 2, Contenders: []result.Entry{{ID: "host"}, {ID: "canal"}, {ID: "macvlan"}},
		Steps: []result.Step{{ID: "dts"}, {ID: "service"}}, Gaps: []result.Gap{{Contender: "host", Step: "service"}},
	}
	key := func(contender, step string, round int) result.Key {
		return result.Key{Contender: contender, Step: step, Round: round}
	}
	sealed := map[result.Key]bool{}
	for _, c := range []struct {
		name string
		key  result.Key
		want progress
	}{
		{"a set-up is no step", key("canal", result.SetupStep, 1), progress{}},
		{"a contender", key("canal", "dts", 1), progress{first: 1}},
		{"the baseline of another round", key("host", "dts", 2), progress{first: 1}},
		{"the baseline", key("host", "dts", 1), progress{comparable: true, first: 2}},
		{"a step that the baseline lacks", key("canal", "service", 1), progress{comparable: true, first: 3}},
		{"another contender", key("macvlan", "service", 1), progress{comparable: true, first: 4}},
		{"a round", key("macvlan", "dts", 1), progress{comparable: true, rounds: 1, first: 5}},
	} {
		sealed[c.key] = true
		if diff := cmp.Diff(c.want, progressOf(plan, "host", sealed), cmp.AllowUnexported(progress{})); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestInOneLine(t *testing.T) {
	compared := func(contender, step, metric string, ratio float64) analysis.Result {
		return analysis.Result{Contender: contender, Step: step, Metric: metric, VsBaseline: &analysis.Comparison{Ratio: ratio}}
	}
	r := &analysis.Report{Baseline: "host", Steps: []result.Step{{ID: "idle"}, {ID: "dts"}}, Results: []analysis.Result{
		{Contender: "host", Step: "dts", Metric: result.Goodput},
		compared("canal", "dts", result.CPUPerGbit, 2.19), compared("canal", "dts", result.Goodput, 0.48), compared("macvlan", "dts", result.Goodput, 1.02),
	}}
	if got, want := inOneLine(r), "goodput of dts, ratio to host: canal 0.48×, macvlan 1.02×"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := inOneLine(&analysis.Report{}); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}
