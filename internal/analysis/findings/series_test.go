package findings_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/analysis/assemble"
	"github.com/cnibench/cnibench/internal/analysis/findings"
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
	flow := slices.Concat(analysistest.Around(1e9, 20))
	slow := slices.Concat(analysistest.Around(0.5e9, 6), analysistest.Around(1e9, 24))
	stepped := slices.Concat(analysistest.Around(1e9, 15), analysistest.Around(0.7e9, 15))
	stalled := analysistest.Around(1e9, 20)
	stalled[7] = 0.1e9
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
		{name: "steady", code: "level_step", traces: []analysis.Trace{analysistest.Seconds("x", 1, flow...)}},
		{name: "too short", code: "warmup_not_over", traces: []analysis.Trace{analysistest.Seconds("x", 1, 1e9, 2e9, 2e9)}},
		{name: "warm-up", code: "warmup_not_over", traces: []analysis.Trace{analysistest.Seconds("x", 1, slow...), analysistest.Seconds("x", 2, slow...)},
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "x", Step: "dts",
				Text: "in rounds 1 and 2 of 2 the received rate went to another level, at most by +99 % after 6 s of 30"}}},
		{name: "warm-up is no step", code: "level_step", traces: []analysis.Trace{analysistest.Seconds("x", 1, slow...)}},
		{name: "step", code: "level_step", traces: []analysis.Trace{analysistest.Seconds("x", 1, stepped...), analysistest.Seconds("x", 2, flow...)},
			want: []analysis.Finding{{Severity: analysis.Info, Contender: "x", Step: "dts", Round: 1,
				Text: "in round 1 of 2 the received rate went to another level, at most by -30 % after 15 s of 30"}}},
		{name: "no load", code: "level_step", traces: []analysis.Trace{analysistest.Seconds("x", 1, 1, 1, 1, 1, 1, 1, 1, 5, 5, 5, 5, 5, 5, 5, 5, 5)}},
		{name: "a stall", code: "bursty_series", traces: []analysis.Trace{analysistest.Seconds("x", 1, stalled...)},
			want: []analysis.Finding{{Severity: analysis.Info, Contender: "x", Step: "dts", Round: 1,
				Text: "in round 1 of 2 single seconds were under half or over twice the usual rate: 100 Mbit/s after 7 s, of a median of 1 Gbit/s (1 interval off)"}}},
		{name: "steady has no bursts", code: "bursty_series", traces: []analysis.Trace{analysistest.Seconds("x", 1, flow...)}},
		{name: "nothing recorded", code: "empty_series", traces: []analysis.Trace{outside},
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "x", Step: "dts", Round: 1,
				Text: "in round 1 of 2 the server's recording holds nothing of the measured window"}}},
		{name: "no byte", code: "empty_series", traces: []analysis.Trace{analysistest.Seconds("x", 2, make([]float64, 10)...)},
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "x", Step: "dts", Round: 2,
				Text: "in round 2 of 2 the server's recording holds no byte received, beside a goodput of 1 Gbit/s"}}},
		{name: "pause", code: "recording_pause", traces: []analysis.Trace{paused},
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "x", Step: "dts", Round: 1,
				Text: "in round 1 of 2 a recorder took no snapshot for 4.0 s after 3 s (server)"}}},
		{name: "one CPU", code: "one_cpu_saturated", traces: []analysis.Trace{busyCPUs(1, 8, 0.985, 1.8), busyCPUs(2, 8, 0.6, 1.8)},
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "x", Step: "dts", Round: 1,
				Text: "in round 1 of 2 one of the client's 8 CPUs was 98.6 % busy and the others 11.7 %"}}},
		{name: "all CPUs", code: "one_cpu_saturated", traces: []analysis.Trace{busyCPUs(1, 2, 0.99, 1.98)}},
		{name: "the only CPU", code: "one_cpu_saturated", traces: []analysis.Trace{busyCPUs(1, 1, 0.99, 0.99)}},
		{name: "CPUs of an unknown side", code: "one_cpu_saturated", arena: "lab", traces: []analysis.Trace{busyCPUs(1, 8, 0.985, 1.8)}},
		{name: "a sample that doesn't count", code: "level_step", traces: []analysis.Trace{analysistest.Seconds("y", 1, stepped...)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rec := analysistest.Record(analysistest.Over(2, "x", analysistest.Always(map[string]float64{"goodput": 1e9}))...)
			rec.Run.Arena = tt.arena
			for i := range rec.Samples {
				rec.Samples[i].Elapsed = unit.Seconds(tt.traces[0].Nodes[0].Window)
			}
			analysistest.CheckFindings(t, assemble.Report(rec, analysis.Options{Traces: tt.traces}).Findings, tt.code, tt.want)
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
				Text: "NetworkPolicy was not enforced: egress (2 of 2 probes passed) and ingress"}}},
		{name: "a dot in a name", code: "policy_not_enforced",
			env:  result.Environment{"check.policy.x.1.ingress": "fail"},
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "x.1", Text: "NetworkPolicy was not enforced: ingress"}}},
		{name: "none promised", code: "policy_not_enforced",
			env:  result.Environment{"check.policy.y.ingress": "fail", "check.policy.y.egress": "fail"},
			want: []analysis.Finding{{Severity: analysis.Info, Contender: "y", Text: "NetworkPolicy was not enforced: egress and ingress; it promises none"}}},
		{name: "many cases", code: "policy_not_enforced",
			env:  result.Environment{"check.policy.x.a": "fail: 1", "check.policy.x.b": "fail", "check.policy.x.c": "fail", "check.policy.x.d": "fail", "check.policy.x.e": "fail", "check.policy.x.f": "fail"},
			want: []analysis.Finding{{Severity: analysis.Error, Contender: "x", Text: "NetworkPolicy was not enforced: a (1), b, c, d and 2 more"}}},
		{name: "effect", code: "policy_effect",
			env: result.Environment{"check.policy.x.effect": "120: milliseconds", "check.policy.x.back": "90", "check.policy.y.effect": "7", "check.policy.z.effect": "skip: no policy had an effect", "check.policy.z.back": "5"},
			want: []analysis.Finding{
				{Severity: analysis.Info, Contender: "x", Text: "a NetworkPolicy cut a connection off 120 ms after it was asked for, and let it pass 90 ms after its deletion was"},
				{Severity: analysis.Info, Contender: "y", Text: "a NetworkPolicy cut a connection off 7 ms after it was asked for"}}},
		{name: "plain", code: "plain_on_the_wire",
			env:  result.Environment{"check.encryption.x.wire": "fail"},
			want: []analysis.Finding{{Severity: analysis.Error, Contender: "x", Text: "the pods' traffic was seen plain between nodes, though encryption is promised or others are encrypted: wire"}}},
		{name: "plain, and promised nothing", code: "plain_on_the_wire", env: result.Environment{"check.encryption.x.pod-udp": "plain: the marker was seen"}},
		{name: "seen nowhere", code: "plain_on_the_wire", env: result.Environment{"check.encryption.x.pod-udp": "unseen"}},
		{name: "gone elsewhere", code: "check_failed", env: result.Environment{"check.encryption.x.pod-udp": "unseen: in none of 9 packets"},
			want: []analysis.Finding{{Severity: analysis.Error, Contender: "x", Text: "the check encryption failed: pod udp (in none of 9 packets)"}}},
		{name: "skipped", code: "plain_on_the_wire", env: result.Environment{"check.encryption.x.wire": "skip: not promised"}},
		{name: "another", code: "check_failed",
			env:  result.Environment{"check.dns.x.cluster-ip": "fail", "check.dns": "fail", "check.dns.x": "fail", "kernel.release": "fail"},
			want: []analysis.Finding{{Severity: analysis.Error, Contender: "x", Text: "the check dns failed: cluster ip"}}},
		{name: "small MTU", code: "mtu_wastes_underlay",
			env: result.Environment{"check.mtu.host.pod": "9000", "check.mtu.x.pod": "1450", "check.mtu.y.pod": "8950"},
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "x",
				Text: "pods send packets of 1450 bytes at most on an underlay of 9000: with 50 bytes of encapsulation it could be 8950"}}},
		{name: "large MTU", code: "mtu_too_large",
			env: result.Environment{"check.mtu.host.pod": "9000", "check.mtu.x.pod": "9000", "check.mtu.x.path": "8898", "check.mtu.y.pod": "9000"},
			want: []analysis.Finding{{Severity: analysis.Error, Contender: "x",
				Text: "pods send packets of up to 9000 bytes, but those of more than 8898 don't cross to another node whole"}}},
		{name: "large MTU, inferred", code: "mtu_too_large",
			env: result.Environment{"check.mtu.host.pod": "1500", "check.mtu.x.pod": "1500"},
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "x",
				Text: "pods send packets of up to 1500 bytes, and the underlay's 1500 less 50 of encapsulation, as the catalogue has it, leave 1450: larger ones should not cross to another node whole; nobody tried"}}},
		{name: "the link's MTU", code: "link_mtu_misleads",
			env: result.Environment{"pod.mtu.x": "9000", "pod.mss.x": "8898", "pod.mtu.y": "8950", "pod.mss.y": "8898", "pod.mss.host": "8948"},
			want: []analysis.Finding{{Severity: analysis.Info, Contender: "x",
				Text: "the pods' interface shows an MTU of 9000, and TCP's segments carry 8898 bytes: the path's MTU is 8950"}}},
		{name: "segments that fit", code: "mtu_too_large", env: result.Environment{"pod.mtu.x": "9000", "pod.mss.x": "8898", "pod.mss.host": "8948"}},
		{name: "no number", code: "mtu_too_large", env: result.Environment{"check.mtu.x.pod": "-1", "check.mtu.x.path": "many"}},
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
			analysistest.CheckFindings(t, assemble.Report(rec, analysis.Options{Catalogue: promised}).Findings, tt.code, tt.want)
		})
	}
}

func TestFindingsOfRounds(t *testing.T) {
	type metrics = map[string]float64
	two := func(round int) map[string]float64 { // two speeds
		return metrics{"goodput": []float64{30e9, 17e9}[round%2] * (1 + 0.01*float64(round))}
	}
	clock := func(back time.Duration) *result.Record {
		a, b := analysistest.Taken("x", 1, metrics{"goodput": 1}), analysistest.Taken("x", 1, metrics{"goodput": 1})
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
		{name: "missing", code: "missing_figure",
			rec: analysistest.Record(slices.Concat(analysistest.Over(1, "host", analysistest.Always(metrics{"goodput": 1, "rate": 2})), analysistest.Over(1, "x", analysistest.Always(metrics{"rate": 2})), analysistest.Over(1, "y", analysistest.Always(metrics{"goodput": 1})))...),
			want: []analysis.Finding{
				{Severity: analysis.Error, Contender: "x", Step: "dts", Text: "no goodput, although there are valid samples and 2 of 3 contenders have it"},
				{Severity: analysis.Error, Contender: "y", Step: "dts", Text: "no rate, although there are valid samples and 2 of 3 contenders have it"}}},
		{name: "a figure of one only", code: "missing_figure",
			rec: analysistest.Record(slices.Concat(analysistest.Over(1, "host", analysistest.Always(metrics{"goodput": 1})), analysistest.Over(1, "x", analysistest.Always(metrics{"goodput": 2, "rate": 2})))...)},
		{name: "above the ceiling", code: "above_ceiling", opt: analysis.Options{LineRate: 10e9},
			rec: analysistest.Record(analysistest.Over(2, "x", func(round int) map[string]float64 { return metrics{"goodput": []float64{9.4e9, 9.9e9}[round-1]} })...),
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "x", Step: "dts", Round: 2,
				Text: "in round 2 of 2 goodput was above what the line rate, an MTU of 1500 and the headers leave: at most 9.9 Gbit/s of 9.56 Gbit/s"}}},
		{name: "two groups", code: "bimodal_rounds",
			rec: analysistest.Record(append(analysistest.Over(8, "host", analysistest.Always(metrics{"goodput": 31e9})), analysistest.Over(8, "x", two)...)...),
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "x", Step: "dts",
				Text: "the rounds' goodput lies in two groups: x near 17.7 Gbit/s in 4 rounds and near 31.5 Gbit/s in 4 (0.57× and 1.02× of host)"}}},
		{name: "two groups of the baseline, too", code: "bimodal_rounds",
			rec: analysistest.Record(append(analysistest.Over(8, "host", two), analysistest.Over(8, "x", two)...)...),
			want: []analysis.Finding{{Severity: analysis.Warn, Step: "dts",
				Text: "the rounds' goodput lies in two groups: host near 17.7 Gbit/s in 4 rounds and near 31.5 Gbit/s in 4; " +
					"x near 17.7 Gbit/s in 4 rounds and near 31.5 Gbit/s in 4 (level with level 1.00× and 1.00× of host)"}}},
		{name: "two groups near each other", code: "bimodal_rounds",
			rec: analysistest.Record(analysistest.Over(8, "x", func(round int) map[string]float64 { return metrics{"goodput": []float64{30e9, 31e9}[round%2]} })...)},
		{name: "scattered", code: "scattered_rounds",
			rec: analysistest.Record(append(analysistest.Over(3, "host", analysistest.Always(metrics{"goodput": 31e9})), analysistest.Over(3, "x", two)...)...),
			want: []analysis.Finding{{Severity: analysis.Warn, Step: "dts",
				Text: "the 3 rounds' goodput lies far apart: x 17.2 Gbit/s to 30.6 Gbit/s (1.78×)"}}},
		{name: "clock set back", code: "clock_step", rec: clock(3 * time.Second),
			want: []analysis.Finding{{Severity: analysis.Warn, Contender: "x", Step: "dtm", Round: 1,
				Text: "1 sample began before the one before it had ended, by 3 s: the machine's clock was set back"}}},
		{name: "clock kept", code: "clock_step", rec: clock(0)},
		{name: "coarse", code: "coarse_resolution",
			rec: analysistest.Record(append(
				analysistest.Over(6, "host", func(round int) map[string]float64 { return metrics{"goodput": 10 + float64(round%3)} }),
				analysistest.Over(6, "x", func(round int) map[string]float64 { return metrics{"goodput": 8 + float64(round%2)} })...)...),
			want: []analysis.Finding{{Severity: analysis.Info, Text: "the smallest difference to host that these rounds would show in four of five runs, for a typical contender: " +
				"dts goodput 20.5 %; to show one of 5 % in all of them: about 39 rounds"}}},
		{name: "blind", code: "coarse_resolution",
			rec: analysistest.Record(append(
				analysistest.Over(3, "host", func(round int) map[string]float64 { return metrics{"goodput": 10 + float64(round%3)} }),
				analysistest.Over(3, "x", func(round int) map[string]float64 { return metrics{"goodput": 8 + float64(round%2)} })...)...),
			want: []analysis.Finding{{Severity: analysis.Info, Text: "these rounds are too few for any difference to host to be more than luck; " +
				"for a typical contender to show one of 5 % it takes: dts goodput out of reach on this machine"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			analysistest.CheckFindings(t, assemble.Report(tt.rec, tt.opt).Findings, tt.code, tt.want)
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
	found := assemble.Report(analysistest.Record(samples...), analysis.Options{}).Findings
	i := slices.IndexFunc(found, func(f analysis.Finding) bool { return f.Code == "bimodal_rounds" })
	if i < 0 || found[i].Contender != "host" {
		t.Errorf("no bimodal_rounds of host in %+v", found)
	}
}

// The windows of the shipped suites are of 1.5 to 10 s: of one sample alone nothing can be
// told, of a step's samples together it can.
func TestShortWindowsShowChanges(t *testing.T) {
	contenders := []string{"host", "a", "b", "c"}
	find := func(seconds int, rate func(r *rand.Rand, i int, half float64) float64) []analysis.Finding {
		r := rand.New(rand.NewPCG(1, 9))
		rec := &result.Record{Run: result.Run{Baseline: "host"}}
		var traces []analysis.Trace
		for round := 1; round <= 6; round++ {
			for _, c := range contenders {
				half := float64(r.IntN(2))
				values := make([]float64, seconds)
				for i := range values {
					values[i] = 1e10 * rate(r, i, half) * math.Exp(0.03*r.NormFloat64())
				}
				s := analysistest.Taken(c, round, map[string]float64{"goodput": 1e10})
				s.Elapsed = unit.Seconds(seconds)
				rec.Samples, traces = append(rec.Samples, s), append(traces, analysistest.Seconds(c, round, values...))
			}
		}
		return findings.Of(analysis.Collect(rec, analysis.Options{Traces: traces}.Complete(&rec.Run.Plan)), "warmup_not_over", "level_step")
	}
	steady := func(*rand.Rand, int, float64) float64 { return 1 }
	for _, seconds := range []int{2, 3, 5, 10} {
		if got := find(seconds, steady); len(got) > 0 {
			t.Errorf("%d s, steady: %v", seconds, got)
		}
		got := find(seconds, func(_ *rand.Rand, i int, _ float64) float64 {
			if i < max(1, seconds/4) {
				return 0.85
			}
			return 1
		})
		if len(got) == 0 || got[0].Code != "warmup_not_over" {
			t.Errorf("%d s, warm-up: %v", seconds, got)
		}
	}
	got := find(10, func(_ *rand.Rand, i int, half float64) float64 {
		if (i < 5) == (half == 1) {
			return 0.8
		}
		return 1
	})
	if len(got) == 0 || got[0].Code != "level_step" {
		t.Errorf("levels: %v", got)
	}
}
