package findings_test

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/analysis/findings"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testutil/analysistest"
)

// Steps that collapsed are found by what they carried, with the signs of lost packets; slow
// networks are no collapse.
func TestCollapsedSteps(t *testing.T) {
	type metrics = map[string]float64
	run := func(host, x metrics) *result.Record {
		return analysistest.Record(append(analysistest.Over(2, "host", analysistest.Always(host)), analysistest.Over(2, "x", analysistest.Always(x))...)...)
	}
	zero := run(metrics{"rate": 1006}, metrics{"rate": 0})
	zero.Run.Plan.Contenders = []result.Entry{{ID: "host"}, {ID: "x"}}
	for i := range zero.Samples {
		if s := &zero.Samples[i]; s.Contender == "x" {
			s.Verdict, s.Reasons = result.Invalid, []result.Reason{{Code: "missing_result", Text: "rate is 0"}}
		}
	}
	for name, tt := range map[string]struct {
		rec     *result.Record
		numbers string // "": nothing is found
	}{
		"connections":     {run(metrics{"rate": 4495}, metrics{"rate": 5, "connect_time_max": 1.02}), "5 4 495 1.02 1"},
		"segments lost":   {run(metrics{"goodput": 13.4e9, "retransmits": 1}, metrics{"goodput": 173e6, "retransmits": 3e3}), "173 13.4 20.1"},
		"nothing":         {zero, "0 1 006 2"},
		"nearly nothing":  {run(metrics{"goodput": 10e9}, metrics{"goodput": 50e6}), "50 10"},
		"a slow tunnel":   {run(metrics{"goodput": 30e9}, metrics{"goodput": 440e6}), ""},
		"a late connect":  {run(metrics{"rate": 4495}, metrics{"rate": 3000, "connect_time_max": 1.02}), ""},
		"a slow baseline": {run(metrics{"rate": 5}, metrics{"rate": 4495}), ""},
	} {
		var want []analysis.Finding
		if tt.numbers != "" {
			want = []analysis.Finding{{Severity: analysis.Error, Contender: "x", Step: "dts", Text: tt.numbers}}
		}
		for i := range tt.rec.Samples {
			tt.rec.Samples[i].Elapsed = 1
		}
		t.Run(name, func(t *testing.T) {
			analysistest.CheckFindings(t, each(tt.rec, analysis.Options{}), "step_collapsed", want)
		})
	}
}

// Bulk far below what the datapath costs is said, with the command that names the cause.
func TestSlowPods(t *testing.T) {
	run := func(datapath string, goodput float64) *result.Record {
		rec := analysistest.Record(append(analysistest.Over(2, "host", analysistest.Always(map[string]float64{"goodput": 10e9})),
			analysistest.Over(2, "x", analysistest.Always(map[string]float64{"goodput": goodput}))...)...)
		rec.Run.Contenders = []result.ContenderInfo{{ID: "host"}, {ID: "x", Datapath: datapath}}
		return rec
	}
	for name, tt := range map[string]struct {
		rec     *result.Record
		numbers string
	}{
		"an offload lost":  {run("bridge × vxlan × kube-proxy", 1.2e9), "1.2 10 0.12 0.19 0.98"},
		"a healthy tunnel": {run("bridge × vxlan × kube-proxy", 5e9), ""},
		"slow routes":      {run("ptp × routes", 2e9), "2 10 0.2 0.32 1.3"},
		"a cipher":         {run("ptp × wireguard", 1e9), ""},
		"nobody knows":     {run("", 1e9), ""},
	} {
		var want []analysis.Finding
		if tt.numbers != "" {
			want = []analysis.Finding{{Severity: analysis.Warn, Contender: "x", Step: "dts", Text: tt.numbers}}
		}
		t.Run(name, func(t *testing.T) {
			analysistest.CheckFindings(t, each(tt.rec, analysis.Options{}), "pods_slow", want)
		})
	}
}

// A full table is read from the recording, also of a sample that is invalid because nothing
// came through, and the node is named.
func TestFullConntrack(t *testing.T) {
	rec := analysistest.Record(analysistest.ValidSample("host", 1, map[string]float64{"rate": 1006}), analysistest.Invalid("x", 1, "missing_result", "rate is 0"))
	rec.Run.Environment = result.Environment{"node.name.1": "worker-a", "node.name.2": "worker-b"}
	node := analysis.NodeTrace{Node: "client", Tracked: 9500, TrackedLimit: 9500}
	idle := analysis.NodeTrace{Node: "client", Tracked: 60, TrackedLimit: 9500}
	found := each(rec, analysis.Options{Traces: []analysis.Trace{{Key: rec.Samples[0].Key(), Nodes: []analysis.NodeTrace{idle}}, {Key: rec.Samples[1].Key(), Nodes: []analysis.NodeTrace{node}}}})
	analysistest.CheckFindings(t, found, "conntrack_full", []analysis.Finding{{Severity: analysis.Error, Contender: "x", Step: "dts", Round: 1, Text: "1 1 9500 9500"}})
	for _, f := range found {
		if f.Code == "conntrack_full" && !strings.Contains(f.Text, "worker-a") {
			t.Errorf("the node is not named: %s", f.Text)
		}
	}
}

// The tool's own CPU limit is said, and is found where it stopped a load, the baseline's, too.
func TestCPULimited(t *testing.T) {
	rec := analysistest.Record(analysistest.ValidSample("host", 1, map[string]float64{"goodput": 2.9e9}), analysistest.ValidSample("x", 1, map[string]float64{"goodput": 2.2e9}))
	traces := func(share float64) analysis.Options {
		var opt analysis.Options
		for _, s := range rec.Samples {
			opt.Traces = append(opt.Traces, analysis.Trace{Key: s.Key(), Nodes: []analysis.NodeTrace{{Node: "client", Throttled: share}, {Node: "server", Throttled: share / 2}}})
		}
		return opt
	}
	for name, tt := range map[string]struct {
		limit string
		share float64
		want  []analysis.Finding
	}{
		"no limit":       {"", 0, nil},
		"never reached":  {"2", 0.01, []analysis.Finding{{Severity: analysis.Info, Text: "2"}}},
		"the tool's own": {"200m", 0.83, []analysis.Finding{{Severity: analysis.Warn, Contender: "host", Step: "dts", Round: 1, Text: "1 1 83 200"}, {Severity: analysis.Warn, Contender: "x", Step: "dts", Round: 1, Text: "1 1 83 200"}}},
		"a LimitRange's": {"", 0.5, []analysis.Finding{{Severity: analysis.Warn, Contender: "host", Step: "dts", Round: 1, Text: "1 1 50"}, {Severity: analysis.Warn, Contender: "x", Step: "dts", Round: 1, Text: "1 1 50"}}},
	} {
		rec.Run.Plan.Settings = map[string]string{"pod-cpu": tt.limit}
		t.Run(name, func(t *testing.T) {
			analysistest.CheckFindings(t, each(rec, traces(tt.share)), "rate_limited", tt.want)
		})
	}
}

// The baseline between the same nodes tells loss of the nodes' network from loss of pods.
func TestWhoLosesSegments(t *testing.T) {
	run := func(host, pods float64) string {
		rec := analysistest.Record(append(analysistest.Over(2, "host", analysistest.Always(map[string]float64{"goodput": 1e9, "retransmits": host})),
			analysistest.Over(2, "x", analysistest.Always(map[string]float64{"goodput": 1e9, "retransmits": pods}))...)...)
		for _, f := range each(rec, analysis.Options{}) {
			if f.Code == "retransmit_storm" && f.Contender == "x" {
				return f.Text
			}
		}
		return ""
	}
	for _, tt := range []struct {
		host, pods float64
		says       string
	}{{28e3, 33e3, "not the pod network"}, {0, 33e3, "only pods lose"}, {10, 20, ""}} {
		if got := run(tt.host, tt.pods); !strings.Contains(got, tt.says) || (tt.says == "") != (got == "") {
			t.Errorf("%v and %v segments sent again: %q, want %q", tt.host, tt.pods, got, tt.says)
		}
	}
}

// A report has one finding of a kind with at most three places, and what explains most of
// the difference comes first.
func TestOfGathers(t *testing.T) {
	var samples []result.Sample
	for _, c := range []string{"host", "a", "b", "c", "d", "e"} {
		samples = append(samples, analysistest.Over(2, c, func(round int) map[string]float64 {
			m := map[string]float64{"goodput": 10e9 * (1 + 0.3*float64(round)), "loss": 0.3}
			if c == "host" {
				m["loss"] = 0
			}
			if c == "e" {
				m["goodput"], m["retransmits"], m["loss"] = 0.5e9, 50e3, 0
			}
			return m
		})...)
	}
	e := analysis.Collect(analysistest.Record(samples...), analysis.Options{}.Complete(&result.Plan{}))
	found := findings.Of(e)
	seen := map[string]bool{}
	for _, f := range found {
		if key := f.Code + f.Severity; seen[key] {
			t.Errorf("two findings of %s", key)
		} else {
			seen[key] = true
		}
		if f.Code == "udp_loss" && (f.Count != 4 || len(f.Places) != 4 || strings.Count(f.Text, "30 %") != 3 || !strings.HasSuffix(f.Text, "and 1 more")) {
			t.Errorf("%+v", f)
		}
	}
	if found[0].Code != "step_collapsed" {
		t.Errorf("first is %s", found[0].Code)
	}
	var warnings []string
	for _, f := range found {
		if f.Severity == analysis.Warn {
			warnings = append(warnings, f.Code)
		}
	}
	if len(warnings) < 3 || warnings[0] != "retransmit_storm" {
		t.Errorf("the order is %v", warnings)
	}
}
