package findings_test

import (
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/analysis/findings"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testutil/analysistest"
)

func TestFindings(t *testing.T) {
	type metrics = map[string]float64
	with := func(rec *result.Record, change func(r *result.Record)) *result.Record {
		change(rec)
		return rec
	}
	tests := []struct {
		name string
		rec  *result.Record
		opt  analysis.Options
		code string
		want []analysis.Finding // without code and next step
	}{
		{name: "corrupt file", code: "unreadable_file",
			rec:  &result.Record{Faults: []result.Fault{{File: "samples.jsonl", Line: 3, Text: "bad"}, {File: "run.json", Text: "odd"}}},
			want: []analysis.Finding{{Severity: analysis.Error, Text: "3"}, {Severity: analysis.Error, Text: ""}}},

		{name: "contender failed in one round", code: "contender_failed",
			rec: with(analysistest.Record(analysistest.Invalid("x", 2, "setup_failed", "no route"), analysistest.Invalid("x", 2, "setup_failed", "the contender did not come up: no route")),
				func(r *result.Record) { r.Samples[0].Step = result.SetupStep }),
			want: []analysis.Finding{{Severity: analysis.Error, Contender: "x", Round: 2, Excluded: true, Text: "2 2"}}},
		{name: "contender failed, set-up sealed before", code: "contender_failed",
			rec:  analysistest.Record(analysistest.Invalid("x", 1, "setup_failed", "no route"), analysistest.Invalid("x", 2, "setup_failed", "timeout")),
			want: []analysis.Finding{{Severity: analysis.Error, Contender: "x", Excluded: true, Text: "1 2 2 1"}}},
		{name: "failed set-up is not told twice", code: "result_missing",
			rec:  analysistest.Record(analysistest.Invalid("x", 1, "setup_failed", "no route"), analysistest.ValidSample("host", 1, metrics{"goodput": 1})),
			want: nil},

		{name: "reasons keep their code", code: "requests_failed",
			rec: analysistest.Record(analysistest.Invalid("x", 1, "rate_short", "90 %"), analysistest.Invalid("x", 3, "rate_short", "90 %"), analysistest.Invalid("y", 1, "rate_short", "80 %")),
			want: []analysis.Finding{
				{Severity: analysis.Error, Contender: "x", Step: "dts", Excluded: true, Text: "1 3 3 90"},
				{Severity: analysis.Error, Contender: "y", Step: "dts", Round: 1, Excluded: true, Text: "1 3 80"}}},
		{name: "a code that nobody listed", code: "result_missing",
			rec:  analysistest.Record(analysistest.Invalid("x", 1, "server_died", "signal 9")),
			want: []analysis.Finding{{Severity: analysis.Error, Contender: "x", Step: "dts", Round: 1, Excluded: true, Text: "1 1 9"}, {Severity: analysis.Error, Text: "1"}, {Severity: analysis.Error, Contender: "x", Step: "dts", Text: "1", Excluded: true}}},
		{name: "no reason given", code: "result_missing",
			rec: with(analysistest.Record(analysistest.Invalid("x", 1, "", "")), func(r *result.Record) { r.Samples[0].Reasons = nil }),
			want: []analysis.Finding{{Severity: analysis.Error, Contender: "x", Step: "dts", Round: 1, Excluded: true,
				Text: "1 1"}, {Severity: analysis.Error, Text: "1"}, {Severity: analysis.Error, Contender: "x", Step: "dts", Text: "1", Excluded: true}}},
		{name: "nothing valid", code: "result_missing",
			rec: analysistest.Record(analysistest.Invalid("x", 1, "rate_short", "90 %")),
			want: []analysis.Finding{
				{Severity: analysis.Error, Text: "1"},
				{Severity: analysis.Error, Contender: "x", Step: "dts", Excluded: true, Text: "1"}}},

		{name: "idle contenders at work", code: "idle_contenders_busy",
			rec: analysistest.Record(append(analysistest.Over(3, "host", analysistest.Always(metrics{"goodput": 2, "cpu_standing": 0.01})), analysistest.Over(3, "x", analysistest.Always(metrics{"goodput": 1, "cpu_standing": 0.1}))...)...),
			want: []analysis.Finding{{Severity: analysis.Warn, Step: "dts",
				Text: "110 100"}}},
		{name: "idle contenders that rest", code: "idle_contenders_busy",
			rec: analysistest.Record(append(analysistest.Over(3, "host", analysistest.Always(metrics{"goodput": 2, "cpu_standing": 0.01})), analysistest.Over(3, "x", analysistest.Always(metrics{"goodput": 1, "cpu_standing": 0.01}))...)...)},

		{name: "incomplete", code: "incomplete_run",
			rec: with(analysistest.Record(analysistest.ValidSample("host", 1, metrics{"goodput": 1})), func(r *result.Record) {
				r.Run.Plan = result.Plan{Rounds: 1000000, Contenders: []result.Entry{{ID: "host"}}, Steps: []result.Step{{ID: "dts"}, {ID: "dtm"}}}
			}),
			want: []analysis.Finding{{Severity: analysis.Warn, Text: "1999999 2000000 1 2 2 3 3 1999994"}}},
		{name: "complete", code: "incomplete_run",
			rec: with(analysistest.Record(analysistest.ValidSample("host", 1, metrics{"goodput": 1})), func(r *result.Record) {
				r.Run.Plan = result.Plan{Rounds: 1, Contenders: []result.Entry{{ID: "host"}}, Steps: []result.Step{{ID: "dts"}}}
			})},

		{name: "no baseline named", code: "no_baseline", rec: &result.Record{},
			want: []analysis.Finding{{Severity: analysis.Warn, Text: ""}}},
		{name: "baseline not measured", code: "no_baseline",
			rec:  analysistest.Record(analysistest.ValidSample("x", 1, metrics{"goodput": 1}), analysistest.Invalid("host", 1, "cpu_steal", "20 %")),
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "host", Text: ""}}},

		{name: "too few rounds", code: "too_few_rounds",
			rec:  analysistest.Record(append(analysistest.Over(3, "host", analysistest.Always(metrics{"goodput": 2})), analysistest.Over(3, "x", analysistest.Always(metrics{"goodput": 1}))...)...),
			want: []analysis.Finding{{Severity: analysis.Warn, Text: "3 95 6 9"}}},
		{name: "enough rounds", code: "too_few_rounds",
			rec: analysistest.Record(analysistest.Over(6, "host", analysistest.Always(metrics{"goodput": 2}))...)},
		{name: "too few valid rounds of one", code: "too_few_rounds",
			rec:  analysistest.Record(append(analysistest.Over(6, "host", analysistest.Always(metrics{"goodput": 2})), analysistest.Over(5, "x", analysistest.Always(metrics{"goodput": 1}))...)...),
			want: []analysis.Finding{{Severity: analysis.Warn, Text: "6 95 5"}}},

		{name: "emulated", code: "emulated_kernel",
			rec:  with(analysistest.Record(), func(r *result.Record) { r.Run.Environment = result.Environment{result.EmulatedKey: "true"} }),
			want: []analysis.Finding{{Severity: analysis.Warn, Text: ""}}},

		{name: "resumed with another version", code: "other_version",
			rec: with(analysistest.Record(analysistest.ValidSample("host", 1, metrics{"goodput": 1}), analysistest.ValidSample("host", 2, metrics{"goodput": 1}), analysistest.ValidSample("x", 2, metrics{"goodput": 1})),
				func(r *result.Record) {
					r.Run.Tool = result.Tool{Version: "1.0", Commit: "abc"}
					r.Samples[1].Tool, r.Samples[2].Tool = "1.1", "1.1"
				}),
			want: []analysis.Finding{{Severity: analysis.Warn, Text: "1.0 1 1.1 2"}}},
		{name: "one version", code: "other_version", rec: analysistest.Record(analysistest.ValidSample("host", 1, metrics{"goodput": 1}))},

		{name: "loss", code: "udp_loss", rec: analysistest.Record(analysistest.ValidSample("x", 1, metrics{"loss": 0.8, "goodput": 1})),
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "x", Step: "dts", Excluded: true, Text: "80"}}},
		{name: "loss of the baseline", code: "udp_loss", rec: analysistest.Record(analysistest.ValidSample("host", 1, metrics{"loss": 0.8, "goodput": 1})),
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "host", Step: "dts", Excluded: true,
				Text: "80"}}},
		{name: "little loss", code: "udp_loss", rec: analysistest.Record(analysistest.ValidSample("x", 1, metrics{"loss": 0.1, "goodput": 1}))},

		{name: "drift", code: "unsteady_rounds",
			rec: analysistest.Record(append(
				analysistest.Over(6, "host", func(round int) map[string]float64 { return metrics{"goodput": 10 - 0.2*float64(round)} }),
				analysistest.Over(6, "x", func(round int) map[string]float64 { return metrics{"goodput": 5 - 0.1*float64(round)} })...)...),
			want: []analysis.Finding{{Severity: analysis.Warn, Step: "dts", Text: "10.8 6 0.0028"}}},
		{name: "no drift in noise", code: "unsteady_rounds",
			rec: analysistest.Record(analysistest.Over(6, "host", func(round int) map[string]float64 {
				return metrics{"goodput": []float64{10, 11, 9, 10.5, 9.5, 10}[round-1]}
			})...)},
		{name: "a drift too small to matter", code: "unsteady_rounds",
			rec: analysistest.Record(analysistest.Over(6, "host", func(round int) map[string]float64 { return metrics{"goodput": 10 + 0.01*float64(round)} })...)},

		{name: "steal", code: "machine_busy",
			rec: analysistest.Record(analysistest.ValidSample("x", 1, metrics{"cpu_client": 0.9, "cpu_server": 0, "cpu_client_steal": 0.1}),
				analysistest.ValidSample("x", 2, metrics{"cpu_client": 1, "cpu_client_steal": 0.001})),
			want: []analysis.Finding{{Severity: analysis.Warn, Text: "1 2 2 10 1"}}},
		{name: "steal on CPUs of both sides", code: "machine_busy",
			rec: analysistest.Record(analysistest.ValidSample("x", 1, metrics{"cpu_client_steal": 0.01, "cpu_per_gbit": 0.1}))},

		{name: "busy machine", code: "machine_busy",
			rec: with(analysistest.Record(analysistest.ValidSample("host", 1, metrics{"cpu_client": 0.5, "cpu_server": 0.25})), func(r *result.Record) {
				r.Run.Plan.Steps = []result.Step{{ID: "dts", Workload: "idle"}}
			}),
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "host", Step: "dts", Text: "750"}}},

		{name: "generator late", code: "client_late",
			rec: analysistest.Record(analysistest.ValidSample("x", 1, metrics{"latency_p50": 100e-6, "send_lag_p50": 60e-6}),
				analysistest.ValidSample("y", 1, metrics{"latency_p50": 100e-6, "send_lag_p50": 10e-6})),
			want: []analysis.Finding{{Severity: analysis.Warn, Step: "dts",
				Text: "60 60"}}},
		{name: "generator late in the tail", code: "client_late",
			rec: with(analysistest.Record(analysistest.ValidSample("x", 1, nil), analysistest.ValidSample("x", 2, nil), analysistest.ValidSample("y", 1, nil)), func(r *result.Record) {
				for i := range r.Samples { // half of p99.9's ten requests beyond are of each round
					lag := analysistest.Histogram(t, 1, 4950)
					if r.Samples[i].Contender == "x" {
						lag = analysistest.Tail(t, 1, 4950, 60, 50)
					}
					r.Samples[i].Histograms = map[string]*hdrhistogram.Histogram{"send_lag": lag, "latency": analysistest.Tail(t, 50, 4950, 100, 50)}
				}
			}),
			want: []analysis.Finding{{Severity: analysis.Warn, Step: "dts",
				Text: "99.9 60 60"}}},

		{name: "unstable baseline", code: "unsteady_rounds",
			rec: analysistest.Record(
				analysistest.ValidSample("host", 1, metrics{"goodput": 20e9, "latency_p50": 100e-6}), analysistest.ValidSample("host", 2, metrics{"goodput": 12e9, "latency_p50": 101e-6}),
				analysistest.ValidSample("x", 1, metrics{"goodput": 30e9}), analysistest.ValidSample("x", 2, metrics{"goodput": 10e9})),
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "host", Step: "dts",
				Text: "12 20 1.67 2"}, {Severity: analysis.Warn, Step: "dts", Text: "2 10 30 3.00"}}},
		{name: "stable baseline", code: "unsteady_rounds",
			rec: analysistest.Record(analysistest.ValidSample("host", 1, metrics{"goodput": 11e9}), analysistest.ValidSample("host", 2, metrics{"goodput": 10e9}))},
		{name: "enough rounds for an interval", code: "unsteady_rounds",
			rec: analysistest.Record(append(analysistest.Over(5, "host", analysistest.Always(metrics{"goodput": 10e9})), analysistest.ValidSample("host", 6, metrics{"goodput": 13e9}))...)},

		{name: "tick in phase", code: "cpu_tick_aliased", rec: analysistest.PacedRun(5000, "y"),
			want: []analysis.Finding{{Severity: analysis.Warn, Step: "dts", Text: "5000 250"}}},
		{name: "CPU in phase is not better", code: "better_than_baseline", rec: analysistest.PacedRun(5000, "y")},
		{name: "tick out of phase", code: "cpu_tick_aliased", rec: analysistest.PacedRun(5003, "y")},
		{name: "exact accounting", code: "cpu_tick_aliased", rec: analysistest.PacedRun(5000, "n")},

		{name: "retransmits", code: "retransmit_storm", // 1e9 bit/s in 10 s are 863308 segments
			rec: analysistest.Record(analysistest.ValidSample("x", 1, metrics{"goodput": 1e9, "retransmits": 20000}), analysistest.ValidSample("y", 1, metrics{"goodput": 1e9, "retransmits": 2000})),
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "x", Step: "dts",
				Text: "2.32"}}},

		{name: "better than the baseline", code: "better_than_baseline",
			rec: analysistest.Record(append(
				analysistest.Over(6, "host", analysistest.Always(metrics{"goodput": 10, "latency_p50": 1})),
				analysistest.Over(6, "x", analysistest.Always(metrics{"goodput": 11, "latency_p50": 0.8}))...)...),
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "x", Step: "dts",
				Text: "1.100 1.100 1.100 50 0.800 0.800 0.800"}}},
		{name: "better in few rounds", code: "better_than_baseline",
			rec: analysistest.Record(append(
				analysistest.Over(3, "host", analysistest.Always(metrics{"goodput": 10})), analysistest.Over(3, "x", analysistest.Always(metrics{"goodput": 11}))...)...),
			want: []analysis.Finding{{Severity: analysis.Info, Contender: "x", Step: "dts",
				Text: "1.100 1.100 1.100 3"}}},
		{name: "as good as the baseline", code: "better_than_baseline",
			rec: analysistest.Record(append(
				analysistest.Over(6, "host", analysistest.Always(metrics{"goodput": 10})), analysistest.Over(6, "x", analysistest.Always(metrics{"goodput": 10.1}))...)...)},

		{name: "line rate", code: "rate_limited",
			rec: with(analysistest.Record(analysistest.ValidSample("host", 1, metrics{"goodput": 9.4e9}), analysistest.ValidSample("x", 1, metrics{"goodput": 9.1e9}), analysistest.ValidSample("y", 1, metrics{"goodput": 3e9})),
				func(r *result.Record) {
					r.Run.Plan.Settings = map[string]string{"line-rate": "10G", "mtu": "1500"}
					r.Run.Contenders = []result.ContenderInfo{{ID: "x", Overhead: 50}}
				}),
			want: []analysis.Finding{{Severity: analysis.Info, Step: "dts", Text: "2 3 10"}}},
		{name: "max rate", code: "rate_limited",
			rec: with(analysistest.Record(analysistest.ValidSample("host", 1, metrics{"goodput": 0.99e9}), analysistest.ValidSample("x", 1, metrics{"goodput": 0.5e9})),
				func(r *result.Record) {
					r.Run.Plan.Steps = []result.Step{{ID: "dts", Workload: "tcp_stream", Params: map[string]any{"bandwidth": "500M", "streams": 2}}}
				}),
			want: []analysis.Finding{{Severity: analysis.Warn, Step: "dts",
				Text: "1 2 1"}}},
		{name: "max rate of UDP", code: "rate_limited",
			rec: with(analysistest.Record(analysistest.ValidSample("host", 1, metrics{"goodput": 0.99e9})), func(r *result.Record) {
				r.Run.Plan.Steps = []result.Step{{ID: "dts", Workload: "udp_bulk", Params: map[string]any{"bandwidth": "1G"}}}
			})},
		{name: "no line rate", code: "rate_limited",
			rec: analysistest.Record(analysistest.ValidSample("host", 1, metrics{"goodput": 9.4e9}), analysistest.ValidSample("x", 1, metrics{"goodput": 9.4e9}))},

		{name: "groups", code: "separate_groups",
			rec: with(analysistest.Record(analysistest.ValidSample("host", 1, metrics{"goodput": 1}), analysistest.ValidSample("host", 2, metrics{"goodput": 1})), func(r *result.Record) {
				r.Samples[0].Underlay, r.Samples[1].Underlay, r.Samples[1].Kernel = "switch", "vpc", "6.1"
			}),
			want: []analysis.Finding{{Severity: analysis.Info, Text: "6.1"}}},
		{name: "groups on one kernel", code: "separate_groups",
			rec: with(analysistest.Record(analysistest.ValidSample("host", 1, metrics{"goodput": 1}), analysistest.ValidSample("host", 2, metrics{"goodput": 1})), func(r *result.Record) {
				r.Samples[0].Underlay, r.Samples[1].Underlay = "switch", "vpc"
				r.Samples[0].Kernel, r.Samples[1].Kernel = "6.18", "6.18"
			}),
			want: []analysis.Finding{{Severity: analysis.Info, Text: ""}}},

		{name: "unknown metric", code: "other_version", rec: analysistest.Record(analysistest.ValidSample("host", 1, metrics{"colour": 7})),
			want: []analysis.Finding{{Severity: analysis.Info, Text: ""}}},

		{name: "notes once", code: "one_thread",
			rec: with(analysistest.Record(analysistest.ValidSample("host", 1, nil), analysistest.ValidSample("x", 1, nil)), func(r *result.Record) {
				for i := range r.Samples {
					r.Samples[i].Notes = []result.Reason{{Code: "one_thread", Text: "iperf3 3.12"}}
				}
			}),
			want: []analysis.Finding{{Severity: analysis.Info, Step: "dts", Note: true, Text: "3 3.12 2"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			analysistest.CheckFindings(t, each(tt.rec, tt.opt), tt.code, tt.want)
		})
	}
}

func TestCleanRunHasNoFindings(t *testing.T) {
	rec := analysistest.Record(append(
		analysistest.Over(6, "host", analysistest.Always(map[string]float64{"goodput": 10e9, "retransmits": 3, "cpu_client": 1})),
		analysistest.Over(6, "x", analysistest.Always(map[string]float64{"goodput": 9e9, "retransmits": 3, "cpu_client": 1}))...)...)
	if got := each(rec, analysis.Options{}); len(got) != 0 {
		t.Errorf("findings of a clean run: %+v", got)
	}
}

func TestEveryVerdictIsExplained(t *testing.T) {
	known := map[string]bool{}
	for _, k := range findings.Reasons() {
		known[k.Code] = true
	}
	for _, code := range append(result.JudgedCodes(), result.NotFinite) {
		if !known[code] {
			t.Errorf("reason code %s is not in findings.yaml", code)
		}
	}
}
