package findings_test

import (
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/analysis/assemble"
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
		{name: "corrupt file", code: "corrupt_samples",
			rec:  &result.Record{Faults: []result.Fault{{File: "samples.jsonl", Line: 3, Text: "bad"}, {File: "run.json", Text: "odd"}}},
			want: []analysis.Finding{{Severity: analysis.Error, Text: "samples.jsonl line 3: bad"}, {Severity: analysis.Error, Text: "run.json: odd"}}},

		{name: "contender failed in one round", code: "contender_failed",
			rec: with(analysistest.Record(analysistest.Invalid("x", 2, "setup_failed", "no route"), analysistest.Invalid("x", 2, "setup_failed", "the contender did not come up: no route")),
				func(r *result.Record) { r.Samples[0].Step = result.SetupStep }),
			want: []analysis.Finding{{Severity: analysis.Error, Contender: "x", Round: 2, Excluded: true, Text: "did not come up in round 2 of 2: no route"}}},
		{name: "contender failed, set-up sealed before", code: "contender_failed",
			rec:  analysistest.Record(analysistest.Invalid("x", 1, "setup_failed", "no route"), analysistest.Invalid("x", 2, "setup_failed", "timeout")),
			want: []analysis.Finding{{Severity: analysis.Error, Contender: "x", Excluded: true, Text: "did not come up in rounds 1 and 2 of 2: round 1: no route; round 2: timeout"}}},
		{name: "failed set-up is not told twice", code: "no_valid_sample",
			rec:  analysistest.Record(analysistest.Invalid("x", 1, "setup_failed", "no route"), analysistest.Taken("host", 1, metrics{"goodput": 1})),
			want: nil},

		{name: "reasons keep their code", code: "rate_short",
			rec: analysistest.Record(analysistest.Invalid("x", 1, "rate_short", "90 %"), analysistest.Invalid("x", 3, "rate_short", "90 %"), analysistest.Invalid("y", 1, "rate_short", "80 %")),
			want: []analysis.Finding{
				{Severity: analysis.Error, Contender: "x", Step: "dts", Excluded: true, Text: "left out in rounds 1 and 3 of 3: 90 %"},
				{Severity: analysis.Error, Contender: "y", Step: "dts", Round: 1, Excluded: true, Text: "left out in round 1 of 3: 80 %"}}},
		{name: "a code that nobody listed", code: "server_died",
			rec:  analysistest.Record(analysistest.Invalid("x", 1, "server_died", "signal 9")),
			want: []analysis.Finding{{Severity: analysis.Error, Contender: "x", Step: "dts", Round: 1, Excluded: true, Text: "left out in round 1 of 1: signal 9"}}},
		{name: "no reason given", code: "invalid_sample",
			rec: with(analysistest.Record(analysistest.Invalid("x", 1, "", "")), func(r *result.Record) { r.Samples[0].Reasons = nil }),
			want: []analysis.Finding{{Severity: analysis.Error, Contender: "x", Step: "dts", Round: 1, Excluded: true,
				Text: "left out in round 1 of 1: the sample says no reason"}}},
		{name: "nothing valid", code: "no_valid_sample",
			rec: analysistest.Record(analysistest.Invalid("x", 1, "rate_short", "90 %")),
			want: []analysis.Finding{
				{Severity: analysis.Error, Text: "none of the run's 1 samples is valid: there are no figures"},
				{Severity: analysis.Error, Contender: "x", Step: "dts", Excluded: true, Text: "no valid sample of 1"}}},

		{name: "idle contenders at work", code: "idle_contenders_busy",
			rec: analysistest.Record(append(analysistest.Over(3, "host", analysistest.Always(metrics{"goodput": 2, "cpu_standing": 0.01})), analysistest.Over(3, "x", analysistest.Always(metrics{"goodput": 1, "cpu_standing": 0.1}))...)...),
			want: []analysis.Finding{{Severity: analysis.Warn, Step: "dts",
				Text: "the processes of contenders that stood idle used 110 mCPU together while others had their slices, those of x most: 100 mCPU"}}},
		{name: "idle contenders that rest", code: "idle_contenders_busy",
			rec: analysistest.Record(append(analysistest.Over(3, "host", analysistest.Always(metrics{"goodput": 2, "cpu_standing": 0.01})), analysistest.Over(3, "x", analysistest.Always(metrics{"goodput": 1, "cpu_standing": 0.01}))...)...)},

		{name: "incomplete", code: "incomplete_run",
			rec: with(analysistest.Record(analysistest.Taken("host", 1, metrics{"goodput": 1})), func(r *result.Record) {
				r.Run.Plan = result.Plan{Rounds: 1000000, Contenders: []result.Entry{{ID: "host"}}, Steps: []result.Step{{ID: "dts"}, {ID: "dtm"}}}
			}),
			want: []analysis.Finding{{Severity: analysis.Warn, Text: "1999999 of 2000000 planned samples are missing: host dtm round 1, " +
				"host dts round 2, host dtm round 2, host dts round 3, host dtm round 3, host dts round 4, host dtm round 4, " +
				"host dts round 5, host dtm round 5, host dts round 6 and 1999989 more"}}},
		{name: "complete", code: "incomplete_run",
			rec: with(analysistest.Record(analysistest.Taken("host", 1, metrics{"goodput": 1})), func(r *result.Record) {
				r.Run.Plan = result.Plan{Rounds: 1, Contenders: []result.Entry{{ID: "host"}}, Steps: []result.Step{{ID: "dts"}}}
			})},

		{name: "no baseline named", code: "no_baseline", rec: &result.Record{},
			want: []analysis.Finding{{Severity: analysis.Warn, Text: "the run names no baseline: there are no ratios"}}},
		{name: "baseline not measured", code: "no_baseline",
			rec:  analysistest.Record(analysistest.Taken("x", 1, metrics{"goodput": 1}), analysistest.Invalid("host", 1, "cpu_steal", "20 %")),
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "host", Text: "no valid sample of dts: there are no ratios"}}},

		{name: "too few rounds", code: "too_few_rounds",
			rec:  analysistest.Record(append(analysistest.Over(3, "host", analysistest.Always(metrics{"goodput": 2})), analysistest.Over(3, "x", analysistest.Always(metrics{"goodput": 1}))...)...),
			want: []analysis.Finding{{Severity: analysis.Warn, Text: "3 rounds: an interval at 95 % needs 6, telling 2 contenders apart 6"}}},
		{name: "enough rounds", code: "too_few_rounds",
			rec: analysistest.Record(analysistest.Over(6, "host", analysistest.Always(metrics{"goodput": 2}))...)},
		{name: "too few valid rounds of one", code: "too_few_rounds",
			rec:  analysistest.Record(append(analysistest.Over(6, "host", analysistest.Always(metrics{"goodput": 2})), analysistest.Over(5, "x", analysistest.Always(metrics{"goodput": 1}))...)...),
			want: []analysis.Finding{{Severity: analysis.Warn, Text: "fewer valid rounds than the 6 that an interval at 95 % needs: x dts (5)"}}},

		{name: "emulated", code: "emulated_kernel",
			rec:  with(analysistest.Record(), func(r *result.Record) { r.Run.Environment = result.Environment{result.EmulatedKey: "true"} }),
			want: []analysis.Finding{{Severity: analysis.Warn, Text: "the kernel ran on an emulated CPU: every figure is many times worse than on real hardware"}}},

		{name: "resumed with another version", code: "mixed_versions",
			rec: with(analysistest.Record(analysistest.Taken("host", 1, metrics{"goodput": 1}), analysistest.Taken("host", 2, metrics{"goodput": 1}), analysistest.Taken("x", 2, metrics{"goodput": 1})),
				func(r *result.Record) {
					r.Run.Tool = result.Tool{Version: "1.0", Commit: "abc"}
					r.Samples[1].Tool, r.Samples[2].Tool = "1.1", "1.1"
				}),
			want: []analysis.Finding{{Severity: analysis.Warn, Text: "measured by several versions of cnibench: 1.0 (abc) took 1 sample, 1.1 took 2 samples"}}},
		{name: "one version", code: "mixed_versions", rec: analysistest.Record(analysistest.Taken("host", 1, metrics{"goodput": 1}))},

		{name: "loss", code: "udp_loss", rec: analysistest.Record(analysistest.Taken("x", 1, metrics{"loss": 0.8, "goodput": 1})),
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "x", Step: "dts", Excluded: true, Text: "80 % of the datagrams were lost: goodput is not comparable"}}},
		{name: "loss of the baseline", code: "udp_loss", rec: analysistest.Record(analysistest.Taken("host", 1, metrics{"loss": 0.8, "goodput": 1})),
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "host", Step: "dts", Excluded: true,
				Text: "80 % of the datagrams were lost: goodput is not comparable, so that there are no ratios to it"}}},
		{name: "little loss", code: "udp_loss", rec: analysistest.Record(analysistest.Taken("x", 1, metrics{"loss": 0.1, "goodput": 1}))},

		{name: "drift", code: "drift",
			rec: analysistest.Record(append(
				analysistest.Over(6, "host", func(round int) map[string]float64 { return metrics{"goodput": 10 - 0.2*float64(round)} }),
				analysistest.Over(6, "x", func(round int) map[string]float64 { return metrics{"goodput": 5 - 0.1*float64(round)} })...)...),
			want: []analysis.Finding{{Severity: analysis.Warn, Step: "dts", Text: "goodput moved by -10.8 % over 6 rounds (p = 0.0028)"}}},
		{name: "no drift in noise", code: "drift",
			rec: analysistest.Record(analysistest.Over(6, "host", func(round int) map[string]float64 {
				return metrics{"goodput": []float64{10, 11, 9, 10.5, 9.5, 10}[round-1]}
			})...)},
		{name: "a drift too small to matter", code: "drift",
			rec: analysistest.Record(analysistest.Over(6, "host", func(round int) map[string]float64 { return metrics{"goodput": 10 + 0.01*float64(round)} })...)},

		{name: "steal", code: "steal_present",
			rec: analysistest.Record(analysistest.Taken("x", 1, metrics{"cpu_client": 0.9, "cpu_server": 0, "cpu_client_steal": 0.1}),
				analysistest.Taken("x", 2, metrics{"cpu_client": 1, "cpu_client_steal": 0.001})),
			want: []analysis.Finding{{Severity: analysis.Warn, Text: "in 1 valid sample of 2 the hypervisor took 2 % or more of the busy CPU time, at most 10 % (x, dts, round 1)"}}},
		{name: "steal on CPUs of both sides", code: "steal_present",
			rec: analysistest.Record(analysistest.Taken("x", 1, metrics{"cpu_client_steal": 0.01, "cpu_per_gbit": 0.1}))},

		{name: "busy machine", code: "busy_machine",
			rec: with(analysistest.Record(analysistest.Taken("host", 1, metrics{"cpu_client": 0.5, "cpu_server": 0.25})), func(r *result.Record) {
				r.Run.Plan.Steps = []result.Step{{ID: "dts", Workload: "idle"}}
			}),
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "host", Step: "dts", Text: "the nodes were busy with 750 mCPU when nothing was measured"}}},

		{name: "generator late", code: "load_generator_late",
			rec: analysistest.Record(analysistest.Taken("x", 1, metrics{"latency_p50": 100e-6, "send_lag_p50": 60e-6}),
				analysistest.Taken("y", 1, metrics{"latency_p50": 100e-6, "send_lag_p50": 10e-6})),
			want: []analysis.Finding{{Severity: analysis.Warn, Step: "dts",
				Text: "requests were sent late: at the median by up to 60 µs, 60 % of the latency there (x); latency contains the client's own delay"}}},
		{name: "generator late in the tail", code: "load_generator_late",
			rec: with(analysistest.Record(analysistest.Taken("x", 1, nil), analysistest.Taken("x", 2, nil), analysistest.Taken("y", 1, nil)), func(r *result.Record) {
				for i := range r.Samples { // half of p99.9's ten requests beyond are of each round
					lag := analysistest.Histogram(t, 1, 4950)
					if r.Samples[i].Contender == "x" {
						lag = analysistest.Tail(t, 1, 4950, 60, 50)
					}
					r.Samples[i].Histograms = map[string]*hdrhistogram.Histogram{"send_lag": lag, "latency": analysistest.Tail(t, 50, 4950, 100, 50)}
				}
			}),
			want: []analysis.Finding{{Severity: analysis.Warn, Step: "dts",
				Text: "requests were sent late: at p99.9 by up to 60 µs, 60 % of the latency there (x); latency contains the client's own delay"}}},

		{name: "unstable baseline", code: "unstable_baseline",
			rec: analysistest.Record(
				analysistest.Taken("host", 1, metrics{"goodput": 20e9, "latency_p50": 100e-6}), analysistest.Taken("host", 2, metrics{"goodput": 12e9, "latency_p50": 101e-6}),
				analysistest.Taken("x", 1, metrics{"goodput": 30e9}), analysistest.Taken("x", 2, metrics{"goodput": 10e9})),
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "host", Step: "dts",
				Text: "goodput was between 12 Gbit/s and 20 Gbit/s (1.67×) in 2 rounds, and every ratio here is to it: the machine or its neighbours disturbed the run, or TCP windows outgrew the CPU cache in some rounds"}}},
		{name: "stable baseline", code: "unstable_baseline",
			rec: analysistest.Record(analysistest.Taken("host", 1, metrics{"goodput": 11e9}), analysistest.Taken("host", 2, metrics{"goodput": 10e9}))},
		{name: "enough rounds for an interval", code: "unstable_baseline",
			rec: analysistest.Record(append(analysistest.Over(5, "host", analysistest.Always(metrics{"goodput": 10e9})), analysistest.Taken("host", 6, metrics{"goodput": 13e9}))...)},

		{name: "tick in phase", code: "cpu_tick_aliased", rec: analysistest.Paced(5000, "y"),
			want: []analysis.Finding{{Severity: analysis.Warn, Step: "dts", Text: "the rate of 5000/s is a multiple of the kernel's tick of 250 Hz, by which it accounts CPU time: " +
				"CPU figures are sampled in phase with the load and can be far off, so they are not ranked"}}},
		{name: "CPU in phase is not better", code: "better_than_baseline", rec: analysistest.Paced(5000, "y")},
		{name: "tick out of phase", code: "cpu_tick_aliased", rec: analysistest.Paced(5003, "y")},
		{name: "exact accounting", code: "cpu_tick_aliased", rec: analysistest.Paced(5000, "n")},

		{name: "retransmits", code: "retransmit_storm", // 1e9 bit/s in 10 s are 863308 segments
			rec: analysistest.Record(analysistest.Taken("x", 1, metrics{"goodput": 1e9, "retransmits": 20000}), analysistest.Taken("y", 1, metrics{"goodput": 1e9, "retransmits": 2000})),
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "x", Step: "dts",
				Text: "2.32 % of the segments were sent again (segments of 1448 bytes of payload, assumed)"}}},

		{name: "better than the baseline", code: "better_than_baseline",
			rec: analysistest.Record(append(
				analysistest.Over(6, "host", analysistest.Always(metrics{"goodput": 10, "latency_p50": 1})),
				analysistest.Over(6, "x", analysistest.Always(metrics{"goodput": 11, "latency_p50": 0.8}))...)...),
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "x", Step: "dts",
				Text: "better than host: goodput 1.100× (1.100 to 1.100); latency_p50 0.800× (0.800 to 0.800)"}}},
		{name: "better in few rounds", code: "better_than_baseline",
			rec: analysistest.Record(append(
				analysistest.Over(3, "host", analysistest.Always(metrics{"goodput": 10})), analysistest.Over(3, "x", analysistest.Always(metrics{"goodput": 11}))...)...),
			want: []analysis.Finding{{Severity: analysis.Info, Contender: "x", Step: "dts",
				Text: "better than host: goodput 1.100× (1.100 to 1.100 in 3 rounds, too few for an interval)"}}},
		{name: "as good as the baseline", code: "better_than_baseline",
			rec: analysistest.Record(append(
				analysistest.Over(6, "host", analysistest.Always(metrics{"goodput": 10})), analysistest.Over(6, "x", analysistest.Always(metrics{"goodput": 10.1}))...)...)},

		{name: "line rate", code: "line_rate_limited",
			rec: with(analysistest.Record(analysistest.Taken("host", 1, metrics{"goodput": 9.4e9}), analysistest.Taken("x", 1, metrics{"goodput": 9.1e9}), analysistest.Taken("y", 1, metrics{"goodput": 3e9})),
				func(r *result.Record) {
					r.Run.Plan.Settings = map[string]string{"line-rate": "10G", "mtu": "1500"}
					r.Run.Contenders = []result.ContenderInfo{{ID: "x", Overhead: 50}}
				}),
			want: []analysis.Finding{{Severity: analysis.Info, Step: "dts", Text: "2 of 3 contenders reach what a line rate of 10 Gbit/s carries (host and x): the link was the limit"}}},
		{name: "max rate", code: "max_rate_limited",
			rec: with(analysistest.Record(analysistest.Taken("host", 1, metrics{"goodput": 0.99e9}), analysistest.Taken("x", 1, metrics{"goodput": 0.5e9})),
				func(r *result.Record) {
					r.Run.Plan.Steps = []result.Step{{ID: "dts", Workload: "tcp_stream", Params: map[string]any{"bandwidth": "500M", "streams": 2}}}
				}),
			want: []analysis.Finding{{Severity: analysis.Warn, Step: "dts",
				Text: "1 of 2 contenders reach the 1 Gbit/s that the step may send (host): the figure is that limit, not what the network carries"}}},
		{name: "max rate of UDP", code: "max_rate_limited",
			rec: with(analysistest.Record(analysistest.Taken("host", 1, metrics{"goodput": 0.99e9})), func(r *result.Record) {
				r.Run.Plan.Steps = []result.Step{{ID: "dts", Workload: "udp_bulk", Params: map[string]any{"bandwidth": "1G"}}}
			})},
		{name: "no line rate", code: "line_rate_limited",
			rec: analysistest.Record(analysistest.Taken("host", 1, metrics{"goodput": 9.4e9}), analysistest.Taken("x", 1, metrics{"goodput": 9.4e9}))},

		{name: "groups", code: "separate_groups",
			rec: with(analysistest.Record(analysistest.Taken("host", 1, metrics{"goodput": 1}), analysistest.Taken("host", 2, metrics{"goodput": 1})), func(r *result.Record) {
				r.Samples[0].Underlay, r.Samples[1].Underlay, r.Samples[1].Kernel = "switch", "vpc", "6.1"
			}),
			want: []analysis.Finding{{Severity: analysis.Info, Text: "compared separately: underlay switch; kernel 6.1, underlay vpc"}}},
		{name: "groups on one kernel", code: "separate_groups",
			rec: with(analysistest.Record(analysistest.Taken("host", 1, metrics{"goodput": 1}), analysistest.Taken("host", 2, metrics{"goodput": 1})), func(r *result.Record) {
				r.Samples[0].Underlay, r.Samples[1].Underlay = "switch", "vpc"
				r.Samples[0].Kernel, r.Samples[1].Kernel = "6.18", "6.18"
			}),
			want: []analysis.Finding{{Severity: analysis.Info, Text: "compared separately: underlay switch; underlay vpc"}}},

		{name: "unknown metric", code: "unknown_metric", rec: analysistest.Record(analysistest.Taken("host", 1, metrics{"colour": 7})),
			want: []analysis.Finding{{Severity: analysis.Info, Text: "metrics that are not shown: colour"}}},

		{name: "notes once", code: "one_thread",
			rec: with(analysistest.Record(analysistest.Taken("host", 1, nil), analysistest.Taken("x", 1, nil)), func(r *result.Record) {
				for i := range r.Samples {
					r.Samples[i].Notes = []result.Reason{{Code: "one_thread", Text: "iperf3 3.12"}}
				}
			}),
			want: []analysis.Finding{{Severity: analysis.Info, Step: "dts", Note: true, Text: "iperf3 3.12 (2 samples of dts)"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []analysis.Finding
			for _, f := range assemble.Report(tt.rec, tt.opt).Findings {
				if f.Code == tt.code {
					if f.Next == "" {
						t.Errorf("no next step: %+v", f)
					}
					f.Code, f.Next = "", ""
					got = append(got, f)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.code, diff)
			}
		})
	}
}

func TestCleanRunHasNoFindings(t *testing.T) {
	rec := analysistest.Record(append(
		analysistest.Over(6, "host", analysistest.Always(map[string]float64{"goodput": 10e9, "retransmits": 3, "cpu_client": 1})),
		analysistest.Over(6, "x", analysistest.Always(map[string]float64{"goodput": 9e9, "retransmits": 3, "cpu_client": 1}))...)...)
	if got := assemble.Report(rec, analysis.Options{}).Findings; len(got) != 0 {
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
