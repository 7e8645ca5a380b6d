package compare_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/analysis/compare"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testutil/analysistest"
	"github.com/cnibench/cnibench/internal/testutil/needs"
)

func compared(t *testing.T, old, now *result.Record, opt compare.Options) *compare.Comparison {
	t.Helper()
	c, err := compare.Runs(old, now, opt)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func failed(c *compare.Comparison) []string {
	list := []string{}
	for _, change := range c.Changes {
		if change.Failed {
			list = append(list, change.Contender+" "+change.Metric)
		}
	}
	return list
}

func TestRunWithItselfPasses(t *testing.T) {
	rec := analysistest.Noisy(1, 6, 1, 1, 0.05)
	for _, vs := range []bool{false, true} {
		c := compared(t, rec, rec, compare.Options{FailOn: analysistest.Share(0), VsBaseline: vs})
		if !*c.Passed || len(c.Differences)+len(c.Missing)+len(c.Notes) > 0 {
			t.Errorf("vs baseline %v: passed %v, differences %v, missing %v, notes %v", vs, *c.Passed, c.Differences, c.Missing, c.Notes)
		}
		for _, change := range c.Changes {
			if change.Direction != compare.Same || math.Abs(*change.Ratio-1) > 0.1 || *change.P != 1 {
				t.Errorf("%s %s: %s, ratio %v, p %v", change.Contender, change.Metric, change.Direction, *change.Ratio, *change.P)
			}
		}
	}
}

// A lab form is held against its product in a cluster, whose underlay has another name, and
// must come up there; in one arena underlays are told apart.
func TestTwoArenas(t *testing.T) {
	lab, cluster := analysistest.Noisy(1, 6, 1, 1, 0.03), analysistest.Noisy(2, 6, 1, 1, 0.03)
	cluster.Run.Arena = "kube"
	for i := range cluster.Samples {
		cluster.Samples[i].Underlay = "cluster"
	}
	for i := range cluster.Run.Plan.Contenders {
		cluster.Run.Plan.Contenders[i].Underlay = "cluster"
	}
	c := compared(t, lab, cluster, compare.Options{VsBaseline: true})
	if len(c.Changes) == 0 || len(c.Missing) > 0 || c.Differences[0].Key != "arena" {
		t.Errorf("%d changes, missing %v, differences %v", len(c.Changes), c.Missing, c.Differences)
	}
	for i := range cluster.Samples {
		if s := &cluster.Samples[i]; s.Contender == "macvlan" {
			s.Verdict, s.Reasons = result.Invalid, []result.Reason{{Code: "setup_failed"}}
		}
	}
	c = compared(t, lab, cluster, compare.Options{FailOn: analysistest.Share(0.5)})
	if *c.Passed || len(c.Missing) != 2 || !c.Missing[0].Failed || !strings.HasSuffix(c.Missing[0].Text, ": setup_failed (6)") {
		t.Errorf("a contender that does not come up in the other arena: passed %v, missing %v", *c.Passed, c.Missing)
	}
	cluster.Run.Arena = lab.Run.Arena
	var selection *compare.SelectionError
	if _, err := compare.Runs(lab, cluster, compare.Options{}); !errors.As(err, &selection) {
		t.Errorf("two underlays of one arena: %v", err)
	}
}

func TestSlowedContenderFails(t *testing.T) {
	c := compared(t, analysistest.Noisy(1, 6, 1, 1, 0.03), analysistest.Noisy(2, 6, 0.7, 1, 0.03), compare.Options{FailOn: analysistest.Share(0.05)})
	want := []string{"flannel-vxlan latency_p50", "flannel-vxlan latency_p99", "flannel-vxlan cpu_per_gbit", "flannel-vxlan goodput"}
	if diff := cmp.Diff(map[string]bool{want[0]: true, want[1]: true, want[2]: true, want[3]: true}, set(failed(c))); diff != "" || *c.Passed {
		t.Errorf("passed %v, failures (-want +got)\n%s", *c.Passed, diff)
	}
	for i, change := range c.Changes[:4] {
		if !change.Failed || !change.Sure && change.Direction != compare.Worse {
			t.Errorf("change %d is %+v; the worst come first", i, change)
		}
	}
	if c := compared(t, analysistest.Noisy(1, 6, 1, 1, 0.03), analysistest.Noisy(2, 6, 0.7, 1, 0.03), compare.Options{FailOn: analysistest.Share(0.5)}); !*c.Passed {
		t.Errorf("a loss of 30 %% fails a limit of 50 %%: %v", failed(c))
	}
	if c := compared(t, analysistest.Noisy(2, 6, 0.7, 1, 0.03), analysistest.Noisy(1, 6, 1, 1, 0.03), compare.Options{FailOn: analysistest.Share(0.05)}); !*c.Passed {
		t.Errorf("getting better fails: %v", failed(c))
	}
}

func set(list []string) map[string]bool {
	m := map[string]bool{}
	for _, s := range list {
		m[s] = true
	}
	return m
}

// A slower machine moves every figure, and none of the ratios to the baseline.
func TestSlowerMachine(t *testing.T) {
	old, now := analysistest.Noisy(3, 6, 1, 1, 0.01), analysistest.Noisy(4, 6, 1, 0.8, 0.01)
	c := compared(t, old, now, compare.Options{FailOn: analysistest.Share(0.05)})
	if *c.Passed || !strings.Contains(strings.Join(c.Notes, "\n"), "--vs-baseline") {
		t.Errorf("passed %v, notes %q", *c.Passed, c.Notes)
	}
	if c := compared(t, old, now, compare.Options{FailOn: analysistest.Share(0.05), VsBaseline: true}); !*c.Passed {
		t.Errorf("vs baseline: %v", failed(c))
	}
}

// Of many comparisons of like with like the gate may fail in at most 5 %, with
// the strictest limit too; and a run made anew is no finding of "sure".
func TestGateFalseAlarms(t *testing.T) {
	pairs := needs.Trials(400, 60)
	for _, limit := range []float64{0, 0.05} {
		alarms, sure := 0, 0
		for seed := range uint64(pairs) {
			c := compared(t, analysistest.Noisy(2*seed, 6, 1, 1, 0.1), analysistest.Noisy(2*seed+1, 6, 1, 1, 0.1), compare.Options{FailOn: &limit})
			if !*c.Passed {
				alarms++
			}
			for _, change := range c.Changes {
				if change.Sure {
					sure++
					break
				}
			}
		}
		// Three standard deviations over 5 %.
		if maximum := int(float64(pairs)*0.05 + 3*math.Sqrt(float64(pairs)*0.05*0.95)); alarms > maximum || sure > maximum {
			t.Errorf("limit %g: %d false alarms and %d false changes in %d comparisons, at most %d are due", limit, alarms, sure, pairs, maximum)
		}
	}
}

func TestTooFewRoundsAreSaid(t *testing.T) {
	for name, c := range map[string]struct {
		rounds int
		opt    compare.Options
		want   string
	}{
		"gate, three rounds": {3, compare.Options{FailOn: analysistest.Share(0.05)}, "16 of 16 figures can't fail the gate, however much worse; 6 rounds in each run would do"},
		"gate, six rounds":   {6, compare.Options{FailOn: analysistest.Share(0.05)}, ""},
		"no gate, five":      {5, compare.Options{}, "16 of 16 figures can't be told after the correction for all of them; 6 rounds"},
		"one figure":         {4, compare.Options{FailOn: analysistest.Share(0.05), Metrics: []string{"goodput"}, Contenders: []string{"macvlan"}}, ""},
	} {
		got := strings.Join(compared(t, analysistest.Noisy(1, c.rounds, 1, 1, 0.01), analysistest.Noisy(2, c.rounds, 1, 1, 0.01), c.opt).Notes, "\n")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// What was measured before and is gone fails the gate, if it was planned.
func TestMissing(t *testing.T) {
	old := analysistest.Noisy(1, 6, 1, 1, 0.01)
	now := analysistest.Noisy(2, 6, 1, 1, 0.01)
	for i := range now.Samples {
		if s := &now.Samples[i]; s.Contender == "macvlan" {
			s.Verdict = result.Invalid
		} else if s.Contender == "flannel-vxlan" {
			delete(s.Metrics, "latency_p99")
		} else if s.Contender == "calico-noencap" {
			s.Contender = "canal"
		}
	}
	now.Run.Plan.Contenders[2].ID = "canal"
	now.Run.Plan.Gaps = []result.Gap{{Contender: "macvlan", Step: "http"}}
	c := compared(t, old, now, compare.Options{FailOn: analysistest.Share(0.05)})
	var got []string
	for _, m := range c.Missing {
		got = append(got, fmt.Sprintln(m.From, m.Contender, m.Step, m.Metric, m.Failed, m.Text[:10]))
	}
	want := []string{
		"new calico-noencap dts  false not in the\n", "new calico-noencap http  false not in the\n",
		"new flannel-vxlan http latency_p99 true the new ru\n", "new macvlan dts  true the new ru\n", "new macvlan http  false not in the\n",
		"old canal dts  false not in the\n", "old canal http  false not in the\n",
	}
	if diff := cmp.Diff(want, got); diff != "" || *c.Passed {
		t.Errorf("passed %v (-want +got)\n%s", *c.Passed, diff)
	}
}

func TestDifferences(t *testing.T) {
	old, now := analysistest.Noisy(1, 6, 1, 1, 0.1), analysistest.Noisy(2, 7, 1, 1, 0.1)
	now.Run.Arena = "kube"
	now.Run.Plan.Settings = map[string]string{"mtu": "9000", "cni-conf": "x"}
	now.Run.Plan.Duration = 3
	now.Run.Plan.Steps[1].Params["rate"] = 100.0
	now.Run.Contenders[1].Version = "2"
	now.Run.Plan.Steps[1].Params["arrivals"] = "constant"
	old.Run.Environment["virt.product"] = "y"
	now.Run.Environment = result.Environment{"kernel.release": "6.19", "cpu.model": "fast", "sysctl.net.x": "1"}
	c := compared(t, old, now, compare.Options{Environment: []string{"cpu.model", "kernel.release", "virt.product"}})
	if notes := strings.Join(c.Notes, "\n"); !strings.HasSuffix(notes, "may differ: step.http.arrivals, environment.cpu.model, environment.virt.product") {
		t.Errorf("notes: %s", notes)
	}
	got := c.Differences
	want := []compare.Difference{
		{Key: "arena", Old: "lab", New: "kube"}, {Key: "setting.mtu", Old: "1500", New: "9000"}, {Key: "duration", Old: "1.5 s", New: "3 s"}, {Key: "step.http.rate", Old: "5003", New: "100"},
		{Key: "contender.macvlan.version", Old: "1", New: "2"}, {Key: "environment.kernel.release", Old: "6.18", New: "6.19"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Runs that took a share each of what they found are compared where their loads are
// alike, and say where not.
func TestOtherCapacity(t *testing.T) {
	old, now := analysistest.Noisy(1, 6, 1, 1, 0.1), analysistest.Noisy(2, 6, 1, 1, 0.1)
	step := now.Run.Plan.Steps[1]
	load, err := step.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range []*result.Record{old, now} {
		rec.Run.Plan.Capacity = map[string]float64{load: 1}
	}
	step.Params["rate"] = 100.0
	c := compared(t, old, now, compare.Options{})
	if len(c.Differences) > 0 || !strings.HasPrefix(c.Notes[0], step.ID+" is not compared: the runs loaded it at 5003/s and at 100/s") {
		t.Errorf("differences %v, notes %v", c.Differences, c.Notes)
	}
	if len(c.Changes) == 0 || slices.ContainsFunc(c.Changes, func(ch compare.Change) bool { return ch.Step == step.ID }) {
		t.Errorf("changes %v", c.Changes)
	}
	if _, err := compare.Runs(old, now, compare.Options{Steps: []string{step.ID}}); err == nil || !strings.Contains(err.Error(), "--rates given") {
		t.Errorf("nothing left: %v", err)
	}
}

// A run in which the machine played along is named.
func TestDisturbedRun(t *testing.T) {
	now := analysistest.Noisy(2, 6, 1, 1, 0.01)
	for i := range now.Samples {
		if s := &now.Samples[i]; s.Contender == "host" && s.Step == "dts" && s.Round%2 == 0 {
			s.Metrics["goodput"] /= 3
		}
	}
	notes := strings.Join(compared(t, analysistest.Noisy(1, 6, 1, 1, 0.01), now, compare.Options{}).Notes, "\n")
	if !strings.Contains(notes, "not at rest in the new run (unsteady_rounds") || strings.Contains(notes, "old run") {
		t.Errorf("notes: %s", notes)
	}
}

// Another kernel is what some comparisons are for: it is a difference, and the
// figures are set beside each other all the same.
func TestOtherKernel(t *testing.T) {
	now := analysistest.Noisy(2, 6, 1, 1, 0.1)
	for i := range now.Samples {
		now.Samples[i].Kernel = "6.19"
	}
	c := compared(t, analysistest.Noisy(1, 6, 1, 1, 0.1), now, compare.Options{})
	if len(c.Changes) != 16 || len(c.Missing) > 0 {
		t.Errorf("%d changes, missing %v", len(c.Changes), c.Missing)
	}
}

// A contender of any run of either side can be chosen, and an unknown name is answered with
// the names of all runs.
func TestSelectionOfRepeatedRuns(t *testing.T) {
	all := repeatedRuns()
	const late = "late"
	for _, i := range []int{3, 7} {
		all[i].Run.Plan.Contenders = append(slices.Clone(all[i].Run.Plan.Contenders), result.Entry{ID: late})
		for k := range all[i].Samples {
			if s := &all[i].Samples[k]; s.Contender == "macvlan" {
				s.Contender = late
			}
		}
	}
	opt := compare.Options{Metrics: []string{"goodput"}, Steps: []string{"dts"}, Contenders: []string{late}, RepeatsOld: all[1:4], RepeatsNew: all[5:]}
	if c := compared(t, all[0], all[4], opt); len(c.Changes) != 1 || c.Changes[0].Contender != late {
		t.Errorf("%+v", c.Changes)
	}
	opt.Contenders = []string{"lat"}
	var selection *compare.SelectionError
	if _, err := compare.Runs(all[0], all[4], opt); !errors.As(err, &selection) || !slices.Contains(selection.Have, late) || !strings.Contains(err.Error(), "none of the runs has it") {
		t.Errorf("%v, names %v", err, selection)
	}
}

func TestSelection(t *testing.T) {
	rec := analysistest.Noisy(1, 6, 1, 1, 0.1)
	for name, c := range map[string]struct {
		opt  compare.Options
		want int // changes; 0: an error
	}{
		"headline":       {compare.Options{}, 16},
		"all":            {compare.Options{Metrics: []string{"all"}}, 20}, // and retransmits; the rate is given
		"one metric":     {compare.Options{Metrics: []string{"rate"}}, 4}, // asked for by name
		"step":           {compare.Options{Steps: []string{"dts"}}, 8},
		"contender":      {compare.Options{Contenders: []string{"host", "macvlan"}}, 8},
		"absent metric":  {compare.Options{Metrics: []string{"jitter"}}, 0},
		"absent step":    {compare.Options{Steps: []string{"dtx"}}, 0},
		"baseline alone": {compare.Options{Contenders: []string{"host"}, VsBaseline: true}, 0},
	} {
		got, err := compare.Runs(rec, rec, c.opt)
		var selection *compare.SelectionError
		switch {
		case c.want == 0 && !errors.As(err, &selection):
			t.Errorf("%s: error %v", name, err)
		case c.want > 0 && (err != nil || len(got.Changes) != c.want):
			t.Errorf("%s: %v, error %v", name, got, err)
		}
	}
}

func TestCompareGolden(t *testing.T) {
	now := analysistest.Noisy(2, 6, 0.8, 1, 0.02)
	now.Run.Environment = result.Environment{"kernel.release": "6.19"}
	got, err := json.MarshalIndent(compared(t, analysistest.Noisy(1, 6, 1, 1, 0.02), now, compare.Options{FailOn: analysistest.Share(0.05), Environment: []string{"kernel.release"}}), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "compare.json")
	if *analysistest.Update {
		if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// What is broken in the new run fails the gate, unless it was so before.
func TestBrokenRunFails(t *testing.T) {
	broken := func(rec *result.Record) *result.Record {
		rec.Samples = slices.DeleteFunc(rec.Samples, func(s result.Sample) bool { return s.Contender == "macvlan" && s.Round == 6 })
		rec.Faults = []result.Fault{{File: "samples.jsonl", Line: 40, Text: "bad sample"}, {File: "samples.torn", Line: 1, Text: "measured again"}}
		return rec
	}
	for name, c := range map[string]struct {
		old, now *result.Record
		gate     *float64
		want     []compare.RunFault
	}{
		"whole": {analysistest.Noisy(1, 6, 1, 1, 0.01), analysistest.Noisy(2, 6, 1, 1, 0.01), analysistest.Share(0.05), []compare.RunFault{}},
		"new": {analysistest.Noisy(1, 6, 1, 1, 0.01), broken(analysistest.Noisy(2, 6, 1, 1, 0.01)), analysistest.Share(0.05), []compare.RunFault{
			{From: "new", Text: "samples.jsonl line 40: bad sample", Failed: true}, {From: "new", Text: "2 of 48 planned samples are missing: macvlan dts round 6, macvlan http round 6", Failed: true},
		}},
		"old": {broken(analysistest.Noisy(1, 6, 1, 1, 0.01)), analysistest.Noisy(2, 6, 1, 1, 0.01), analysistest.Share(0.05), []compare.RunFault{
			{From: "old", Text: "samples.jsonl line 40: bad sample", Failed: false}, {From: "old", Text: "2 of 48 planned samples are missing: macvlan dts round 6, macvlan http round 6", Failed: false},
		}},
		"no gate": {analysistest.Noisy(1, 6, 1, 1, 0.01), broken(analysistest.Noisy(2, 6, 1, 1, 0.01)), nil, []compare.RunFault{
			{From: "new", Text: "samples.jsonl line 40: bad sample", Failed: false}, {From: "new", Text: "2 of 48 planned samples are missing: macvlan dts round 6, macvlan http round 6", Failed: false},
		}},
	} {
		got := compared(t, c.old, c.now, compare.Options{FailOn: c.gate})
		if diff := cmp.Diff(c.want, got.Faults); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
		if c.gate != nil && *got.Passed == (name == "new") {
			t.Errorf("%s: passed %v", name, *got.Passed)
		}
	}
	rec := broken(analysistest.Noisy(1, 6, 1, 1, 0.01))
	if c := compared(t, rec, rec, compare.Options{FailOn: analysistest.Share(0.05)}); !*c.Passed || len(c.Faults) != 2 || c.Faults[0].From != "both" {
		t.Errorf("a run with itself: %v", c.Faults)
	}
}

// A gate that nothing can fail does not pass.
func TestGateThatCannotFail(t *testing.T) {
	c := compared(t, analysistest.Noisy(1, 3, 1, 1, 0.01), analysistest.Noisy(2, 3, 0.5, 1, 0.01), compare.Options{FailOn: analysistest.Share(0.05)})
	if *c.Passed || c.Unable != 16 || c.Enough != 6 {
		t.Errorf("passed %v, %d unable, %d rounds would do", *c.Passed, c.Unable, c.Enough)
	}
}

// Runs that differ from each other by more than their rounds do: one run a side calls that
// a change nearly always, several runs a side do not.
func TestRepeatedRuns(t *testing.T) {
	const tries = 40
	r := rand.New(rand.NewPCG(21, 22))
	opt := func() compare.Options {
		return compare.Options{Metrics: []string{"goodput"}, Contenders: []string{"flannel-vxlan"}}
	}
	once, repeated := 0, 0
	for range tries {
		var runs []*result.Record
		for range 8 {
			runs = append(runs, analysistest.Noisy(r.Uint64(), 6, 1, math.Exp(0.1*r.NormFloat64()), 0.01))
		}
		single, err := compare.Runs(runs[0], runs[4], opt())
		if err != nil {
			t.Fatal(err)
		}
		o := opt()
		o.RepeatsOld, o.RepeatsNew = runs[1:4], runs[5:]
		several, err := compare.Runs(runs[0], runs[4], o)
		if err != nil {
			t.Fatal(err)
		}
		if c := several.Changes[0]; len(c.Old.Values) != 4 || len(c.New.Values) != 4 || c.CI == nil {
			t.Fatalf("%+v", c)
		}
		if single.Changes[0].Sure {
			once++
		}
		if several.Changes[0].Sure {
			repeated++
		}
	}
	if once < tries/2 || repeated > tries/5 {
		t.Errorf("of %d comparisons without a change, %d were sure with one run a side and %d with four", tries, once, repeated)
	}
}

// A step that the plan leaves the baseline out of is judged by its ratios to the baseline's
// figures of the same load from pod to pod.
func TestStandInFailsTheGate(t *testing.T) {
	service := func(seed uint64, slow float64) *result.Record {
		rec := analysistest.Noisy(seed, 6, 1, 1, 0.01)
		rec.Run.Plan.Steps = append(rec.Run.Plan.Steps[:1], result.Step{ID: "sts", Workload: "tcp_stream", Path: "service", Params: map[string]any{"streams": 1.0}})
		rec.Run.Plan.Gaps = []result.Gap{{Contender: "host", Step: "sts"}}
		rec.Samples = slices.DeleteFunc(rec.Samples, func(s result.Sample) bool { return s.Step != "dts" })
		for _, s := range slices.Clone(rec.Samples) {
			if s.Contender != "host" {
				s.Step, s.Path, s.Metrics = "sts", "service", map[string]float64{"goodput": s.Metrics["goodput"] * slow}
				rec.Samples = append(rec.Samples, s)
			}
		}
		return rec
	}
	c := compared(t, service(1, 1), service(2, 0.5), compare.Options{
		FailOn: analysistest.Share(0.05), VsBaseline: true, Steps: []string{"sts"}, Contenders: []string{"macvlan"}})
	if got := c.Changes[0]; *c.Passed || !got.Failed || len(got.Old.Values) != 6 || len(got.New.Values) != 6 {
		t.Errorf("passed %v, notes %v, %+v", *c.Passed, c.Notes, got)
	}
}

// repeatedRuns returns four old and four new runs of the same thing.
func repeatedRuns() (runs [8]*result.Record) {
	for i := range runs {
		runs[i] = analysistest.Noisy(uint64(i), 6, 1, 1, 0.01)
	}
	return runs
}

// What a repeated run lacks is told of it, and fails the gate if it is a new run.
func TestRepeatsLackFigures(t *testing.T) {
	type runs = [8]*result.Record
	invalid := func(rec *result.Record) {
		for i := range rec.Samples {
			if s := &rec.Samples[i]; s.Contender == "macvlan" && s.Step == "dts" {
				s.Verdict = result.Invalid
			}
		}
	}
	for name, c := range map[string]struct {
		edit     func(all runs)
		old, now int // values of macvlan
		missing  []string
		faults   []string
		passed   bool
	}{
		"whole": {func(runs) {}, 4, 4, nil, nil, true},
		"new repeats": {func(all runs) { invalid(all[5]); invalid(all[6]); invalid(all[7]) }, 4, 1, []string{
			"new: new run 2 has no valid sample", "new: new run 3 has no valid sample", "new: new run 4 has no valid sample"}, nil, false},
		"old repeat":    {func(all runs) { invalid(all[2]) }, 3, 4, []string{"old: old run 3 has no valid sample"}, nil, true},
		"first new run": {func(all runs) { invalid(all[4]) }, 4, 3, []string{"new: new run 1 has no valid sample"}, nil, false},
		"first old run": {func(all runs) { invalid(all[0]) }, 3, 4, []string{"old: old run 1 has no valid sample"}, nil, true},
		"first old and later new run": {func(all runs) { invalid(all[0]); invalid(all[6]) }, 3, 3, []string{
			"new: new run 3 has no valid sample", "old: old run 1 has no valid sample"}, nil, false},
		"first old and all new runs": {func(all runs) { invalid(all[0]); invalid(all[4]); invalid(all[5]); invalid(all[6]); invalid(all[7]) }, 0, 0, []string{
			"new: new run 1 has no valid sample", "new: new run 2 has no valid sample", "new: new run 3 has no valid sample", "new: new run 4 has no valid sample",
			"old: old run 1 has no valid sample"}, nil, false},
		"first old run, and no new run planned": {func(all runs) {
			invalid(all[0])
			for _, rec := range all[4:] {
				invalid(rec)
				rec.Run.Plan.Contenders = slices.Concat(rec.Run.Plan.Contenders[:1], rec.Run.Plan.Contenders[2:])
			}
		}, 0, 0, []string{"new: not in new run 1's plan", "new: not in new run 2's plan", "new: not in new run 3's plan", "new: not in new run 4's plan",
			"old: old run 1 has no valid sample"}, nil, true},
		"not planned": {func(all runs) {
			invalid(all[6])
			all[6].Run.Plan.Contenders = slices.Concat(all[6].Run.Plan.Contenders[:1], all[6].Run.Plan.Contenders[2:])
		}, 4, 3, []string{"new: not in new run 3's plan"}, nil, true},
		"lossy": {func(all runs) {
			for i, rec := range all {
				rec.Run.Plan.Steps[0].Workload = "udp_stream"
				for j := range rec.Samples {
					if s := &rec.Samples[j]; s.Step == "dts" {
						s.Workload, s.Metrics["loss"] = "udp_stream", 0
						if i == 6 && s.Contender == "macvlan" {
							s.Metrics["loss"] = 0.5
						}
					}
				}
			}
		}, 4, 3, []string{"new: new run 3 has no valid sample"}, nil, false},
		"broken": {func(all runs) { all[6].Faults = []result.Fault{{File: "samples.jsonl", Line: 40, Text: "bad"}} }, 4, 4, nil,
			[]string{"new: run 3 of 4: samples.jsonl line 40: bad"}, false},
		"broken before": {func(all runs) {
			all[1].Faults = []result.Fault{{File: "samples.jsonl", Line: 40, Text: "bad"}}
			all[6].Faults = all[1].Faults
		}, 4, 4, nil, []string{"old: run 2 of 4: samples.jsonl line 40: bad", "new: run 3 of 4: samples.jsonl line 40: bad"}, true},
		"another kernel": {func(all runs) {
			for i := range all[6].Samples {
				all[6].Samples[i].Kernel = "6.19"
			}
		}, 4, 4, nil, nil, true},
	} {
		all := repeatedRuns()
		c.edit(all)
		got := compared(t, all[0], all[4], compare.Options{FailOn: analysistest.Share(0.05), Metrics: []string{"goodput"}, Steps: []string{"dts"},
			Contenders: []string{"macvlan", "flannel-vxlan"}, RepeatsOld: all[1:4], RepeatsNew: all[5:]})
		var missing, faults []string
		for _, m := range got.Missing {
			text, _, _ := strings.Cut(m.Text, " with ")
			missing = append(missing, m.From+": "+text)
		}
		for _, f := range got.Faults {
			faults = append(faults, f.From+": "+f.Text)
		}
		if diff := cmp.Diff([][]string{c.missing, c.faults}, [][]string{missing, faults}); diff != "" || *got.Passed != c.passed {
			t.Errorf("%s: passed %v, missing and faults (-want +got)\n%s", name, *got.Passed, diff)
		}
		var old, now int
		for _, change := range got.Changes {
			if change.Contender == "macvlan" {
				old, now = len(change.Old.Values), len(change.New.Values)
			}
		}
		if old != c.old || now != c.now {
			t.Errorf("%s: values of %d old and %d new runs, want %d and %d", name, old, now, c.old, c.now)
		}
	}
}

// A repeated run in which the machine played along is named.
func TestDisturbedRepeat(t *testing.T) {
	all := repeatedRuns()
	for i := range all[6].Samples {
		if s := &all[6].Samples[i]; s.Contender == "host" && s.Step == "dts" && s.Round%2 == 0 {
			s.Metrics["goodput"] /= 3
		}
	}
	notes := strings.Join(compared(t, all[0], all[4], compare.Options{RepeatsOld: all[1:4], RepeatsNew: all[5:]}).Notes, "\n")
	if !strings.Contains(notes, "not at rest in new run 3 (unsteady_rounds") {
		t.Errorf("notes: %s", notes)
	}
}

// Whatever differs in any run from the first is listed once.
func TestDifferencesOfRepeats(t *testing.T) {
	all := repeatedRuns()
	all[1].Run.Plan.Settings["mtu"] = "1400"
	for _, rec := range all[4:] {
		rec.Run.Plan.Settings["mtu"] = "9000"
		rec.Run.Environment = result.Environment{"kernel.release": "6.19"}
	}
	all[6].Run.Environment["cpu.model"] = "fast"
	c := compared(t, all[0], all[4], compare.Options{RepeatsOld: all[1:4], RepeatsNew: all[5:], Environment: []string{"cpu.model", "kernel.release"}})
	want := []compare.Difference{
		{Key: "setting.mtu", Old: "1500", New: "9000"}, {Key: "environment.kernel.release", Old: "6.18", New: "6.19"}, {Key: "setting.mtu", Old: "1500", New: "1400"},
	}
	if diff := cmp.Diff(want, c.Differences); diff != "" || !strings.HasSuffix(strings.Join(c.Notes, "\n"), "may differ: environment.cpu.model") {
		t.Errorf("notes %q, differences (-want +got)\n%s", c.Notes, diff)
	}
}

// From three old runs on, a comparison says where a further one would lie.
func TestExpected(t *testing.T) {
	all := repeatedRuns()
	c := compared(t, all[0], all[4], compare.Options{RepeatsOld: all[1:4], RepeatsNew: all[5:]})
	for _, change := range c.Changes {
		if change.Expected == nil || !(change.Expected[0] < change.Old.Median && change.Old.Median < change.Expected[1]) {
			t.Errorf("%s %s %s: expected %v around %v", change.Contender, change.Step, change.Metric, change.Expected, change.Old.Median)
		}
	}
	for _, change := range compared(t, all[0], all[4], compare.Options{RepeatsOld: all[1:2]}).Changes {
		if change.Expected != nil {
			t.Errorf("two old runs: %v", change.Expected)
		}
	}
}
