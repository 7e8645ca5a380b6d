package findings_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testutil/analysistest"
	"github.com/cnibench/cnibench/internal/unit"
)

// busyCPUs is a trace whose client has so many CPUs, one of them so busy and
// all together total.
func busyCPUs(round, cpus int, busiest, total float64) analysis.Trace {
	t := analysistest.Seconds("x", round, analysistest.Around(1e9, 10)...)
	n := &t.Nodes[0]
	n.Node, n.CPUs = "client", cpus
	n.Busiest, n.Busy = analysistest.Around(busiest, 10), analysistest.Around(total, 10)
	return t
}

func TestFindingsOfSeries(t *testing.T) {
	paused := analysistest.Seconds("x", 1, analysistest.Around(1e9, 10)...)
	paused.Nodes[0].Times = []float64{1, 2, 3, 7, 8, 9, 10}
	outside := analysistest.Seconds("x", 1, analysistest.Around(1e9, 10)...)
	outside.Nodes[0].Times = slices.Repeat([]float64{-1}, 10)
	tests := []struct {
		name   string
		code   string
		arena  string
		traces []analysis.Trace
		want   []analysis.Finding
	}{
		{name: "nothing recorded", code: "recording_gap", traces: []analysis.Trace{outside},
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "x", Step: "dts", Round: 1,
				Text: "1 2"}}},
		{name: "no byte", code: "recording_gap", traces: []analysis.Trace{analysistest.Seconds("x", 2, make([]float64, 10)...)},
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "x", Step: "dts", Round: 2,
				Text: "2 2 1"}}},
		{name: "pause", code: "recording_gap", traces: []analysis.Trace{paused},
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "x", Step: "dts", Round: 1,
				Text: "1 2 4.0 3"}}},
		{name: "one CPU", code: "one_cpu_saturated", traces: []analysis.Trace{busyCPUs(1, 8, 0.985, 1.8), busyCPUs(2, 8, 0.6, 1.8)},
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "x", Step: "dts", Round: 1,
				Text: "1 2 8 98.6 11.7"}}},
		{name: "all CPUs", code: "one_cpu_saturated", traces: []analysis.Trace{busyCPUs(1, 2, 0.99, 1.98)}},
		{name: "the only CPU", code: "one_cpu_saturated", traces: []analysis.Trace{busyCPUs(1, 1, 0.99, 0.99)}},
		{name: "CPUs of an unknown side", code: "one_cpu_saturated", arena: "lab", traces: []analysis.Trace{busyCPUs(1, 8, 0.985, 1.8)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rec := analysistest.Record(analysistest.Over(2, "x", analysistest.Always(map[string]float64{"goodput": 1e9}))...)
			rec.Run.Arena = tt.arena
			for i := range rec.Samples {
				rec.Samples[i].Elapsed = unit.Seconds(tt.traces[0].Nodes[0].Window)
			}
			analysistest.CheckFindings(t, each(rec, analysis.Options{Traces: tt.traces}), tt.code, tt.want)
		})
	}
}

func TestFindingsOfChecks(t *testing.T) {
	tests := []struct {
		name string
		code string
		env  result.Environment
		want []analysis.Finding
	}{
		{name: "policy", code: "policy_not_enforced",
			env: result.Environment{"check.policy.x.ingress": "fail", "check.policy.x.egress": "fail: 2 of 2 probes passed", "check.policy.y.ingress": "pass"},
			want: []analysis.Finding{{Severity: analysis.Error, Contender: "x",
				Text: "2 2"}}},
		{name: "a dot in a name", code: "policy_not_enforced",
			env:  result.Environment{"check.policy.x.1.ingress": "fail"},
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "x.1", Text: ""}}},
		{name: "none promised", code: "policy_not_enforced",
			env:  result.Environment{"check.policy.y.ingress": "fail", "check.policy.y.egress": "fail"},
			want: []analysis.Finding{{Severity: analysis.Info, Contender: "y", Text: ""}}},
		{name: "many cases", code: "policy_not_enforced",
			env:  result.Environment{"check.policy.x.a": "fail: 1", "check.policy.x.b": "fail", "check.policy.x.c": "fail", "check.policy.x.d": "fail", "check.policy.x.e": "fail", "check.policy.x.f": "fail"},
			want: []analysis.Finding{{Severity: analysis.Error, Contender: "x", Text: "1 2"}}},
		{name: "effect", code: "policy_effect",
			env: result.Environment{"check.policy.x.effect": "120: milliseconds", "check.policy.x.back": "90", "check.policy.y.effect": "7", "check.policy.z.effect": "skip: no policy had an effect", "check.policy.z.back": "5"},
			want: []analysis.Finding{
				{Severity: analysis.Info, Contender: "x", Text: "120 90"},
				{Severity: analysis.Info, Contender: "y", Text: "7"}}},
		{name: "plain", code: "plain_on_the_wire",
			env:  result.Environment{"check.encryption.x.wire": "fail"},
			want: []analysis.Finding{{Severity: analysis.Error, Contender: "x", Text: ""}}},
		{name: "plain, and promised nothing", code: "plain_on_the_wire", env: result.Environment{"check.encryption.x.pod-udp": "plain: the marker was seen"}},
		{name: "seen nowhere", code: "plain_on_the_wire", env: result.Environment{"check.encryption.x.pod-udp": "unseen"}},
		{name: "gone elsewhere", code: "check_failed", env: result.Environment{"check.encryption.x.pod-udp": "unseen: in none of 9 packets"},
			want: []analysis.Finding{{Severity: analysis.Error, Contender: "x", Text: "9"}}},
		{name: "skipped", code: "plain_on_the_wire", env: result.Environment{"check.encryption.x.wire": "skip: not promised"}},
		{name: "another", code: "check_failed",
			env:  result.Environment{"check.dns.x.cluster-ip": "fail", "check.dns": "fail", "check.dns.x": "fail", "kernel.release": "fail"},
			want: []analysis.Finding{{Severity: analysis.Error, Contender: "x", Text: ""}}},
		{name: "small MTU", code: "mtu_wrong",
			env: result.Environment{"check.mtu.host.pod": "9000", "check.mtu.x.pod": "1450", "check.mtu.y.pod": "8950"},
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "x",
				Text: "1450 9000 50 8950"}}},
		{name: "large MTU", code: "mtu_wrong",
			env: result.Environment{"check.mtu.host.pod": "9000", "check.mtu.x.pod": "9000", "check.mtu.x.path": "8898", "check.mtu.y.pod": "9000"},
			want: []analysis.Finding{{Severity: analysis.Error, Contender: "x",
				Text: "9000 8898"}}},
		{name: "large MTU, inferred", code: "mtu_wrong",
			env: result.Environment{"check.mtu.host.pod": "1500", "check.mtu.x.pod": "1500"},
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "x",
				Text: "1500 1500 50 1450"}}},
		{name: "the link's MTU", code: "mtu_wrong",
			env: result.Environment{"pod.mtu.x": "9000", "pod.mss.x": "8898", "pod.mtu.y": "8950", "pod.mss.y": "8898", "pod.mss.host": "8948"},
			want: []analysis.Finding{{Severity: analysis.Info, Contender: "x",
				Text: "9000 8898 8950"}}},
		{name: "segments that fit", code: "mtu_wrong", env: result.Environment{"pod.mtu.x": "9000", "pod.mss.x": "8898", "pod.mss.host": "8948"},
			want: []analysis.Finding{{Severity: analysis.Info, Contender: "x", Text: "9000 8898 8950"}}},
		{name: "no number", code: "mtu_wrong", env: result.Environment{"check.mtu.x.pod": "-1", "check.mtu.x.path": "many"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rec := analysistest.Record()
			rec.Run.Environment = tt.env
			rec.Run.Contenders = []result.ContenderInfo{{ID: "x", Overhead: 50}, {ID: "host"}, {ID: "y"}}
			promised := []analysis.Capability{
				{Contender: "x", Name: "policy", Value: "yes"}, {Contender: "x", Name: "egress-policy", Value: "no"},
				{Contender: "y", Name: "policy", Value: "no"}, {Contender: "y", Name: "egress-policy", Value: "no"},
			}
			analysistest.CheckFindings(t, each(rec, analysis.Options{Catalogue: promised}), tt.code, tt.want)
		})
	}
}

func TestFindingsOfRounds(t *testing.T) {
	type metrics = map[string]float64
	two := func(round int) map[string]float64 { // two speeds
		return metrics{"goodput": []float64{30e9, 17e9}[round%2] * (1 + 0.01*float64(round))}
	}
	clock := func(back time.Duration) *result.Record {
		a, b := analysistest.ValidSample("x", 1, metrics{"goodput": 1}), analysistest.ValidSample("x", 1, metrics{"goodput": 1})
		b.Step, a.Order, b.Order = "dtm", 1, 2
		a.Started = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		b.Started = a.Started.Add(time.Duration(float64(a.Elapsed)*1e9) - back)
		return analysistest.Record(a, b)
	}
	tests := []struct {
		name string
		code string
		rec  *result.Record
		opt  analysis.Options
		want []analysis.Finding
	}{
		{name: "missing", code: "result_missing",
			rec: analysistest.Record(slices.Concat(analysistest.Over(1, "host", analysistest.Always(metrics{"goodput": 1, "rate": 2})), analysistest.Over(1, "x", analysistest.Always(metrics{"rate": 2})), analysistest.Over(1, "y", analysistest.Always(metrics{"goodput": 1})))...),
			want: []analysis.Finding{
				{Severity: analysis.Error, Contender: "x", Step: "dts", Text: "2 3"},
				{Severity: analysis.Error, Contender: "y", Step: "dts", Text: "2 3"}}},
		{name: "a figure of one only", code: "result_missing",
			rec: analysistest.Record(slices.Concat(analysistest.Over(1, "host", analysistest.Always(metrics{"goodput": 1})), analysistest.Over(1, "x", analysistest.Always(metrics{"goodput": 2, "rate": 2})))...)},
		{name: "above the ceiling", code: "above_ceiling", opt: analysis.Options{LineRate: 10e9},
			rec: analysistest.Record(analysistest.Over(2, "x", func(round int) map[string]float64 { return metrics{"goodput": []float64{9.4e9, 9.9e9}[round-1]} })...),
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "x", Step: "dts", Round: 2,
				Text: "2 2 1500 9.9 9.56"}}},
		{name: "two groups", code: "unsteady_rounds",
			rec: analysistest.Record(append(analysistest.Over(8, "host", analysistest.Always(metrics{"goodput": 31e9})), analysistest.Over(8, "x", two)...)...),
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "x", Step: "dts",
				Text: "17.7 4 31.5 4 0.57 1.02"}}},
		{name: "two groups of the baseline, too", code: "unsteady_rounds",
			rec: analysistest.Record(append(analysistest.Over(8, "host", two), analysistest.Over(8, "x", two)...)...),
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "host", Step: "dts", Text: "17.2 32.4 1.89 8"}, {Severity: analysis.Warn, Step: "dts",
				Text: "17.7 4 31.5 4 17.7 4 31.5 4 1.00 1.00"}}},
		{name: "two groups near each other", code: "unsteady_rounds",
			rec: analysistest.Record(analysistest.Over(8, "x", func(round int) map[string]float64 { return metrics{"goodput": []float64{30e9, 31e9}[round%2]} })...)},
		{name: "scattered", code: "unsteady_rounds",
			rec: analysistest.Record(append(analysistest.Over(3, "host", analysistest.Always(metrics{"goodput": 31e9})), analysistest.Over(3, "x", two)...)...),
			want: []analysis.Finding{{Severity: analysis.Warn, Step: "dts",
				Text: "3 17.2 30.6 1.78"}}},
		{name: "clock set back", code: "clock_step", rec: clock(3 * time.Second),
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "x", Step: "dtm", Round: 1,
				Text: "1 3"}}},
		{name: "clock kept", code: "clock_step", rec: clock(0)},
		{name: "coarse", code: "too_few_rounds",
			rec: analysistest.Record(append(
				analysistest.Over(6, "host", func(round int) map[string]float64 { return metrics{"goodput": 10 + float64(round%3)} }),
				analysistest.Over(6, "x", func(round int) map[string]float64 { return metrics{"goodput": 8 + float64(round%2)} })...)...),
			want: []analysis.Finding{{Severity: analysis.Info, Text: "20.5 39 5"}}},
		{name: "blind", code: "too_few_rounds",
			rec: analysistest.Record(append(
				analysistest.Over(3, "host", func(round int) map[string]float64 { return metrics{"goodput": 10 + float64(round%3)} }),
				analysistest.Over(3, "x", func(round int) map[string]float64 { return metrics{"goodput": 8 + float64(round%2)} })...)...),
			want: []analysis.Finding{{Severity: analysis.Warn, Text: "3 95 6 9"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			analysistest.CheckFindings(t, each(tt.rec, tt.opt), tt.code, tt.want)
		})
	}
}

// Rounds at two levels are found beside figures with too few rounds to be
// tested, which do not count in the correction.
func TestTwoLevelsBesideFewRounds(t *testing.T) {
	levels := []float64{9.7e9, 23.6e9, 11.1e9, 23.7e9, 11.7e9, 26e9}
	samples := analysistest.Over(6, "host", func(round int) map[string]float64 {
		return map[string]float64{"goodput": levels[round-1]}
	})
	for i := range 12 {
		samples = append(samples, analysistest.Over(5, fmt.Sprint("c", i), func(round int) map[string]float64 {
			return map[string]float64{"goodput": 10e9 + 1e8*float64(round)}
		})...)
	}
	found := each(analysistest.Record(samples...), analysis.Options{})
	i := slices.IndexFunc(found, func(f analysis.Finding) bool { return f.Code == "unsteady_rounds" })
	if i < 0 || found[i].Contender != "host" {
		t.Errorf("no bimodal_rounds of host in %+v", found)
	}
}
