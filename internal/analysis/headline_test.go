package analysis_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testutil/analysistest"
)

// Percentiles are those of all rounds' requests together, and appear as soon
// as these carry them, although no single round does.
func TestLatencyOfAllRounds(t *testing.T) {
	rec := analysistest.Record()
	for round := 1; round <= 4; round++ {
		for contender, us := range map[string]int64{"host": 100, "x": 200} {
			if round == 4 {
				us *= 10
			}
			s := analysistest.ValidSample(contender, round, map[string]float64{"latency_p50": float64(us) / 1e6})
			s.Histograms = map[string]*hdrhistogram.Histogram{"latency": analysistest.Histogram(t, us, 2500)}
			rec.Samples = append(rec.Samples, s)
		}
	}
	r := report.Analyse(rec, analysis.Options{})
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 0.001*math.Abs(b) })

	p50 := analysistest.Find(t, r, "x", "latency_p50")
	if diff := cmp.Diff([]float64{200e-6, 200e-6, 200e-6, 2000e-6}, p50.Values, near); diff != "" || p50.N != 4 || p50.Count != 10000 {
		t.Errorf("p50 of %d rounds, %d requests, values (-want +got):\n%s", p50.N, p50.Count, diff)
	}
	if !cmp.Equal(p50.Median, 200e-6, near) || !cmp.Equal(p50.VsBaseline.Ratio, 2.0, near) || p50.VsBaseline.P == nil {
		t.Errorf("p50 = %v, against the baseline %+v; want 200 µs and 2, paired", p50.Median, p50.VsBaseline)
	}
	p999 := analysistest.Find(t, r, "x", "latency_p99_9")
	want := analysis.Result{
		Contender: "x", Step: "dts", Path: "pod", Metric: "latency_p99_9", Unit: "s", Better: "lower",
		N: 4, Of: 4, Median: 2000e-6, Count: 10000, Confidence: 0.95, Values: []float64{}, VsBaseline: &analysis.Comparison{Ratio: 2, P: analysistest.Share(1), Pairs: 4}, Letters: []string{},
		RoundsBeyond: 1, // the last round made all of them
	}
	if diff := cmp.Diff(want, p999, near); diff != "" {
		t.Errorf("p99.9, which no round carries (-want +got):\n%s", diff)
	}
	for _, res := range r.Results {
		if res.Metric == "latency_p99_99" {
			t.Error("p99.99 is given with one request beyond it")
		}
	}
	for _, c := range r.Curves { // the table and the curve agree
		for _, p := range c.Points {
			if res := analysistest.Find(t, r, c.Contender, "latency_p99_9"); p.Percentile == 99.9 && p.Seconds != res.Median {
				t.Errorf("%s: p99.9 is %v on the curve and %v in the table", c.Contender, p.Seconds, res.Median)
			}
		}
	}
}

// Without histograms a round in the middle stands for all, never a mean.
func TestLatencyWithoutHistograms(t *testing.T) {
	rec := analysistest.Record(analysistest.Over(4, "host", func(round int) map[string]float64 {
		return map[string]float64{"latency_p99": float64(round), "latency_mean": float64(round)}
	})...)
	r := report.Analyse(rec, analysis.Options{})
	if got := analysistest.Find(t, r, "host", "latency_p99"); got.Median != 2 || got.Count != 0 {
		t.Errorf("p99 = %v of %d requests, want the second of four rounds", got.Median, got.Count)
	}
	if got := analysistest.Find(t, r, "host", "latency_mean"); got.Median != 2.5 {
		t.Errorf("mean = %v, want the median of the rounds", got.Median)
	}
}

func TestRanked(t *testing.T) {
	all := map[string]float64{
		"goodput": 10, "packets": 10, "context_switches": 10, "memory_used": 10, "cpu_client": 10, "cpu_client_steal": 10,
		"send_lag_p50": 10, "latency_p50": 10, "rate": 10, "cpu_per_gbit": 10,
	}
	figures := func(contender string, scale float64) []result.Sample {
		return analysistest.Over(6, contender, func(int) map[string]float64 {
			scaled := map[string]float64{"loss": 0.2 - 0.15*scale} // 0.05 for host, 0.125 for x
			for name, v := range all {
				scaled[name] = v * scale
			}
			return scaled
		})
	}
	tiers := func(rec *result.Record, contender string) map[string]int {
		got := map[string]int{}
		for name := range all {
			got[name] = analysistest.Find(t, report.Analyse(rec, analysis.Options{}), contender, name).Tier
		}
		return got
	}
	rec := analysistest.Record(slices.Concat(figures("host", 1), figures("x", 0.5), figures("z", 1))...)
	want := map[string]int{
		"goodput": 0, "packets": 0, "context_switches": 0, "memory_used": 0, "cpu_client": 1, "cpu_client_steal": 0,
		"send_lag_p50": 0, "latency_p50": 1, "rate": 2, "cpu_per_gbit": 0,
	}
	if diff := cmp.Diff(want, tiers(rec, "x")); diff != "" {
		t.Errorf("tiers of x, which lost too much (-want +got):\n%s", diff)
	}
	if got := analysistest.Find(t, report.Analyse(rec, analysis.Options{}), "z", "goodput"); got.Tier != 0 {
		t.Errorf("goodput of z, the only one which lost little, is in tier %d", got.Tier)
	}

	same := analysistest.PacedRun(5003, "y")
	if got := analysistest.Find(t, report.Analyse(same, analysis.Options{}), "x", "rate"); got.Tier != 0 {
		t.Errorf("the rate of a constant-rate step is in tier %d", got.Tier)
	}
	if got := analysistest.Find(t, report.Analyse(same, analysis.Options{}), "x", "cpu_per_request"); !got.Ranked {
		t.Error("CPU out of phase with the tick is not ranked")
	}
	if got := analysistest.Find(t, report.Analyse(analysistest.PacedRun(5000, "y"), analysis.Options{}), "x", "cpu_per_request"); got.Ranked {
		t.Error("CPU in phase with the tick is ranked")
	}
}

// A baseline whose goodput says nothing is no base of ratios.
func TestNoRatioToALossyBaseline(t *testing.T) {
	rec := analysistest.Record(analysistest.ValidSample("host", 1, map[string]float64{"goodput": 2, "loss": 0.5}), analysistest.ValidSample("x", 1, map[string]float64{"goodput": 1, "loss": 0}))
	if got := analysistest.Find(t, report.Analyse(rec, analysis.Options{}), "x", "goodput"); got.VsBaseline != nil || !got.Ranked {
		t.Errorf("ratio %+v, ranked %v; want none and ranked", got.VsBaseline, got.Ranked)
	}
}

func TestResolution(t *testing.T) {
	rec := analysistest.Costly(0.05, map[string]analysistest.Cost{"host": {Goodput: 40e9, CPU: 0.01, Memory: 1e9}, "x": {Goodput: 20e9, CPU: 0.05, Memory: 1.5e9}})
	r := report.Analyse(rec, analysis.Options{})
	for _, c := range []string{"host", "x"} {
		got := analysistest.Find(t, r, c, "goodput")
		if got.MDD == nil || *got.MDD < 0.02 || *got.MDD > 0.3 || got.RoundsFor5 < 6 || got.RoundsFor5 > 200 {
			t.Errorf("%s: mdd %v, rounds for 5 %% %d, with 8 rounds of 5 %% noise", c, got.MDD, got.RoundsFor5)
		}
	}
	rec.Samples = slices.DeleteFunc(rec.Samples, func(s result.Sample) bool { return s.Round > 3 })
	if got := analysistest.Find(t, report.Analyse(rec, analysis.Options{}), "x", "goodput"); got.MDD != nil || got.RoundsFor5 < 6 {
		t.Errorf("three rounds show nothing: mdd %v, rounds for 5 %% %d", got.MDD, got.RoundsFor5)
	}
}

// The ratio of a percentile is that of the figures that stand beside it: 650 over 713 µs
// was printed as 0.65×, because the ratio was of the rounds' own percentiles.
func TestPercentileAndRatioAreOfOneKind(t *testing.T) {
	var samples []result.Sample
	for round := 1; round <= 7; round++ {
		host, x := analysistest.Tail(t, 100, 980, 500, 20), analysistest.Tail(t, 100, 980, 325, 20)
		if round > 4 {
			host, x = analysistest.Tail(t, 100, 1000, 713, 60), analysistest.Tail(t, 100, 1000, 650, 60)
		}
		for contender, h := range map[string]*hdrhistogram.Histogram{"host": host, "x": x} {
			s := analysistest.ValidSample(contender, round, map[string]float64{"latency_p99": float64(h.ValueAtPercentile(99)) / 1e9})
			s.Histograms = map[string]*hdrhistogram.Histogram{"latency": h}
			samples = append(samples, s)
		}
	}
	r := report.Analyse(analysistest.Record(samples...), analysis.Options{})
	x, host := analysistest.Find(t, r, "x", "latency_p99"), analysistest.Find(t, r, "host", "latency_p99")
	if c := x.VsBaseline; math.Abs(c.Ratio-x.Median/host.Median) > 1e-3 {
		t.Errorf("%.0f over %.0f µs is %.2f, printed %.2f", 1e6*x.Median, 1e6*host.Median, x.Median/host.Median, c.Ratio)
	}
	if x.CI == nil || x.CI[0] > x.Median || x.CI[1] < x.Median*(1-1e-3) {
		t.Errorf("the interval %v is not of the figure %v", x.CI, x.Median)
	}
}

func BenchmarkPercentiles(b *testing.B) {
	rec := &result.Record{Run: result.Run{Baseline: "host"}}
	r := rand.New(rand.NewPCG(1, 2))
	for round := 1; round <= 9; round++ {
		for _, c := range []string{"host", "a", "b", "c", "d", "e", "f", "g", "h"} {
			s := analysistest.ValidSample(c, round, nil)
			s.Histograms = map[string]*hdrhistogram.Histogram{}
			for _, clock := range []string{"latency", "service_time", "network_time", "send_lag"} {
				h := hdrhistogram.New(1, 1e10, 3)
				for range 20000 {
					_ = h.RecordValue(int64(1e5 * (1 + r.ExpFloat64())))
				}
				s.Histograms[clock] = h
			}
			rec.Samples = append(rec.Samples, s)
		}
	}
	for b.Loop() {
		analysis.Collect(rec, analysis.Options{}.Complete(&result.Plan{}))
	}
}
