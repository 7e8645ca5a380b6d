package published_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/contenders"
	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/published"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/suite"
	"github.com/cnibench/cnibench/suites"
)

func studies(t testing.TB) []published.Study {
	t.Helper()
	all, err := published.Studies()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestContenders: a row that stands for a contender names one of the
// catalogue, no table has it twice, and the baseline stands for host.
func TestContenders(t *testing.T) {
	catalogue, err := contender.Load(contenders.FS)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, c := range catalogue {
		known[c.ID] = true
	}
	for _, s := range studies(t) {
		for _, table := range s.Tables {
			seen := map[string]bool{}
			for _, r := range table.Rows {
				if r.Contender != "" && (!known[r.Contender] || seen[r.Contender]) {
					t.Errorf("%s, %s: contender %s is not in the catalogue, or twice", s.ID, table.Title, r.Contender)
				}
				seen[r.Contender] = true
				if (r.Name == table.Baseline) != (r.Contender == "host") {
					t.Errorf("%s, %s: row %s: the baseline is host and nothing else", s.ID, table.Title, r.Name)
				}
			}
		}
	}
}

// TestClasses: the steps of the suites that repeat a study are of a class
// that a study has figures of, so that no name is misspelt on either side.
func TestClasses(t *testing.T) {
	have := map[string]bool{}
	for _, s := range studies(t) {
		for _, table := range s.Tables {
			for _, c := range table.Columns {
				have[c.Class] = true
			}
		}
	}
	all, err := suite.Load(suites.FS)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, s := range all {
		steps, err := s.Expand(suite.RatesAuto, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range steps {
			class := published.Class(step)
			got[class] = true
			repeated := s.ID == "latency" || s.ID == "micro" || s.ID == "throughput" && step.ID != "idle"
			if repeated && !have[class] {
				t.Errorf("suite %s, step %s: class %q is in no study", s.ID, step.ID, class)
			}
		}
	}
	for class := range have {
		if class != "" && !got[class] && !strings.Contains(class, "rr-") {
			t.Errorf("class %q of a study is no suite's", class)
		}
	}
}

func TestClass(t *testing.T) {
	for _, c := range []struct {
		step result.Step
		want string
	}{
		{result.Step{Workload: "tcp_stream", Path: "pod", Params: map[string]any{"streams": 1}}, "tcp-1"},
		{result.Step{Workload: "tcp_bulk", Path: "pod", Params: map[string]any{"streams": 1}}, "tcp-1"},
		{result.Step{Workload: "udp_stream", Path: "service", Params: map[string]any{"streams": 8.0}}, "udp-multi-service"},
		{result.Step{Workload: "udp_lat", Params: map[string]any{"size": 1024.0}}, "udp-lat-1k"},
		{result.Step{Workload: "udp_lat", Params: map[string]any{"size": 2048.0}}, ""},
		{result.Step{Workload: "http_rate", Params: map[string]any{"response": "4KiB"}}, "http-4k"},
		{result.Step{Workload: "http_rate", Params: map[string]any{"response": "4KiB", "connection_per_request": true}}, ""},
		{result.Step{Workload: "http_rate", Params: map[string]any{"response": "1KiB"}}, ""},
		{result.Step{Workload: "http_rate"}, ""},
		{result.Step{Workload: "http_get", Path: "pod"}, "file-http"},
		{result.Step{Workload: "scp_copy"}, "file-scp"},
		{result.Step{Workload: "tcp_rr", Params: map[string]any{"connections": 1, "rate": 0}}, "tcp-rr-1"},
		{result.Step{Workload: "tcp_crr", Params: map[string]any{"connections": 32}}, "tcp-crr-multi"},
		{result.Step{Workload: "tcp_rr", Params: map[string]any{"connections": 1, "rate": 1000.0}}, ""},
		{result.Step{Workload: "idle"}, ""},
	} {
		if got := published.Class(c.step); got != c.want {
			t.Errorf("%v: %q, want %q", c.step, got, c.want)
		}
	}
}

// TestBeside compares with ratios computed by hand from the data.
func TestBeside(t *testing.T) {
	compared := &analysis.Comparison{Ratio: 2, CI: &analysis.Interval{1.5, 2.5}}
	r := &analysis.Report{Baseline: "host"}
	for _, s := range []struct {
		id   string
		rate float64
	}{{"h10", 5100}, {"h40", 20000}, {"h50", 25000}, {"h90", 45000}, {"h100", 50000}} {
		r.Steps = append(r.Steps, result.Step{ID: s.id, Workload: "http_rate", Path: "pod", Params: map[string]any{"response": "350B", "rate": s.rate}})
		r.Results = append(r.Results, analysis.Result{Contender: "flannel-vxlan", Step: s.id, Metric: "network_time_p99", Better: "lower", VsBaseline: compared})
	}
	r.Steps = append(r.Steps,
		result.Step{ID: "lat", Workload: "tcp_lat", Path: "pod", Params: map[string]any{"size": 1}},
		result.Step{ID: "dts", Workload: "tcp_stream", Path: "pod", Params: map[string]any{"streams": 1}},
		result.Step{ID: "sts", Workload: "tcp_stream", Path: "service", Params: map[string]any{"streams": 1}},
		result.Step{ID: "dus", Workload: "udp_stream", Path: "pod", Params: map[string]any{"streams": 1}},
		result.Step{ID: "http", Workload: "http_get", Path: "pod"})
	r.Results = append(r.Results, []analysis.Result{
		{Contender: "host", Step: "lat", Metric: "latency_mean"},
		{Contender: "calico-ipip", Step: "lat", Metric: "latency_mean", VsBaseline: compared},
		{Contender: "calico-ipip", Step: "lat", Metric: "rate", VsBaseline: compared},
		{Contender: "calico-ipip", Step: "sts", Metric: "goodput", VsBaseline: compared},
		{Contender: "macvlan", Step: "dts", Metric: "goodput", VsBaseline: compared},
		{Contender: "macvlan", Step: "dts", Metric: "goodput", VsBaseline: &analysis.Comparison{Ratio: math.NaN()}},
		{Contender: "cilium", Step: "dus", Metric: "goodput", VsBaseline: compared},
		{Contender: "cilium", Step: "sts", Metric: "goodput", VsBaseline: compared},
		{Contender: "kuberouter", Step: "dus", Metric: "goodput", VsBaseline: compared},
		{Contender: "cilium", Step: "http", Metric: "goodput", VsBaseline: compared},
	}...)
	type row struct {
		Contender, Step, Study string
		Ratio                  float64
		LineLimited            bool
	}
	var got []row
	for _, f := range published.Beside(r, studies(t)) {
		got = append(got, row{f.Contender, f.Step, f.Study, math.Round(f.Ratio*1e4) / 1e4, f.LineLimited})
		if diff := cmp.Diff(*compared, f.Ours); diff != "" {
			t.Error(diff)
		}
	}
	want := []row{
		{"flannel-vxlan", "h10", "machinezone-2016", 2.5, false},   // 1.0 ms by 0.4 ms, at 50,000/s
		{"flannel-vxlan", "h50", "machinezone-2016", 2.375, false}, // 1.9 ms by 0.8 ms, at 250,000/s
		{"calico-ipip", "lat", "kube-ovn-1.8", 1.2892, false},      // 21.4 µs by 16.6 µs
		{"macvlan", "dts", "daocloud-2023", 1.0022, true},          // 9.18 by 9.16 Gbit/s, on a link of 9.2
		{"cilium", "dus", "ducastel-2019", 0.977, false},           // given as a ratio
		{"cilium", "dus", "ducastel-2024", 0.9809, false},          // 7.20 by 7.34 Gbit/s
		{"cilium", "sts", "ducastel-2024", 0.7162, false},          // 22.86 by 31.92 Gbit/s of dts
		// kuberouter's dus lost more than a tenth: no ratio
		{"cilium", "http", "ducastel-2018", 0.8645, true}, // 8162 by 9441 Mibit/s, the latter all that 10 Gbit/s carry
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	// Shares are of what a calibration found, and of the host network's alone.
	key, err := r.Steps[2].Load()
	if err != nil {
		t.Fatal(err)
	}
	r.Results = r.Results[1:2]
	r.Plan.Capacity = map[string]float64{key: 20000 / 0.7}
	got = nil
	for _, f := range published.Beside(r, studies(t)) {
		got = append(got, row{f.Contender, f.Step, f.Study, math.Round(f.Ratio), f.LineLimited}) // 375 by 1.2 ms
	}
	if diff := cmp.Diff([]row{{"flannel-vxlan", "h40", "machinezone-2016", 313, false}}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	r.Plan.SharesOf = result.SharesOfSlowest
	if got := published.Beside(r, studies(t)); len(got) != 0 {
		t.Errorf("shares of the slowest: %v", got)
	}
	if got := published.Beside(&analysis.Report{}, studies(t)); got == nil || len(got) != 0 {
		t.Errorf("nothing to compare: %v", got)
	}
}

func TestSelect(t *testing.T) {
	all := studies(t)
	if got, err := published.Select(all, nil); err != nil || len(got) != len(all) {
		t.Errorf("all: %d, %v", len(got), err)
	}
	got, err := published.Select(all, []string{"kube-ovn-1.8", "cilium-2021"})
	if err != nil || len(got) != 2 || got[0].ID != "kube-ovn-1.8" {
		t.Errorf("two: %v, %v", got, err)
	}
	if _, err := published.Select(all, []string{"kube-ovn-1.9"}); err == nil || !strings.Contains(err.Error(), "kube-ovn-1.8") {
		t.Errorf("a slip of the pen: %v", err)
	}
}

const good = `id: x
title: T
author: A
date: "2026"
url: https://example.org
hardware: H
software: S
method: M
caveats: []
tables:
  - title: one
    read: table
    baseline: host
    columns: [{name: tcp, unit: Gbit/s, class: tcp-1, metric: goodput}]
    rows:
      - {name: host, contender: host, values: [2]}
      - {name: y, values: [~]}
`

func TestRead(t *testing.T) {
	if _, err := published.Read("x.yaml", strings.NewReader(good)); err != nil {
		t.Fatal(err)
	}
	s, err := published.Read("x.yaml", strings.NewReader(strings.Replace(good, "values: [2]", "runs: [[5, ~, 2, 3]]", 1)))
	if err != nil || *s.Tables[0].Rows[0].Values[0] != 3 {
		t.Errorf("the median of runs 5, 2 and 3: %+v, %v", s, err)
	}
	for name, c := range map[string]struct{ old, new, says string }{
		"another id":       {"id: x", "id: z", "id is z"},
		"no source":        {"url: https://example.org", `url: ""`, "no url"},
		"unknown key":      {"title: T", "titel: T", "titel"},
		"unknown reading":  {"read: table", "read: guess", "guess"},
		"no baseline row":  {"baseline: host", "baseline: hots", "hots"},
		"unknown metric":   {"metric: goodput", "metric: godput", "catalogue"},
		"class alone":      {", metric: goodput", "", "neither"},
		"too many values":  {"[2]", "[2, 3]", "2 values for 1 columns"},
		"a negative value": {"[2]", "[-2]", "-2"},
		"a word":           {"[2]", "[two]", "x.yaml:"},
		"values and runs":  {"[2]", "[2], runs: [[1, 2]]", "2 values for 1 columns"},
		"a negative run":   {"values: [2]", "runs: [[-1, 2]]", "-1"},
		"no tables":        {good[strings.Index(good, "tables:"):], "tables: []\n", "no tables"},
	} {
		_, err := published.Read("x.yaml", strings.NewReader(strings.Replace(good, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want an error that says %q", name, err, c.says)
		}
	}
}

// FuzzRead: what is accepted can be set beside a report.
func FuzzRead(f *testing.F) {
	f.Add([]byte(good))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := published.Read("x.yaml", bytes.NewReader(text))
		if err != nil {
			return
		}
		r := &analysis.Report{Steps: []result.Step{{ID: "dts", Workload: "tcp_stream", Params: map[string]any{"streams": 1}}}}
		for _, table := range s.Tables {
			for _, row := range table.Rows {
				r.Results = append(r.Results, analysis.Result{Contender: row.Contender, Step: "dts", Metric: "goodput", VsBaseline: &analysis.Comparison{Ratio: 1}})
			}
		}
		for _, figure := range published.Beside(r, []published.Study{*s}) {
			if math.IsNaN(figure.Ratio) || math.IsInf(figure.Ratio, 0) {
				t.Errorf("ratio %v", figure.Ratio)
			}
		}
	})
}
