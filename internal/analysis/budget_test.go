package analysis_test

import (
	"math"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testutil/analysistest"
)

func source(t *testing.T, r analysis.Result, name string) float64 {
	t.Helper()
	for i, p := range r.Errors {
		if i > 0 && p.Relative > r.Errors[i-1].Relative {
			t.Errorf("%s: the largest source is not the first: %+v", r.Metric, r.Errors)
		}
		if p.Source == name {
			return p.Relative
		}
	}
	return math.NaN()
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.IsNaN(got) != math.IsNaN(want) || math.Abs(got-want) > 1e-9 {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// The sources of a cost's error: 6 rounds of 10 s with 1 CPU busy are 15,000 ticks of 250 Hz,
// and a recording that is half a second longer than the load has 5 % more to it.
func TestErrorBudgetOfCost(t *testing.T) {
	rec := analysistest.Record(analysistest.Over(6, "x", func(round int) map[string]float64 {
		return map[string]float64{"goodput": 10e9, "cpu_per_gbit": 0.1 + 0.001*float64(round)}
	})...)
	rec.Run.Plan.Duration = 10
	rec.Run.Environment = result.Environment{analysis.TickKey: "y", analysis.HzKey: "250"}
	for i := range rec.Samples {
		rec.Samples[i].Elapsed = 10.5
	}
	cpu := analysistest.Find(t, report.Analyse(rec, analysis.Options{}), "x", "cpu_per_gbit")
	busy := 0.0
	for round := 1; round <= 6; round++ {
		busy += (0.1 + 0.001*float64(round)) * 10 * 10.5
	}
	tick := 1.96 / math.Sqrt(busy*250)
	near(t, "tick", source(t, cpu, analysis.ErrorTick), tick)
	near(t, "edges", source(t, cpu, analysis.ErrorEdges), 0.05)
	interval := math.Sqrt(0.106/0.101) - 1
	near(t, "rounds", source(t, cpu, analysis.ErrorRounds), math.Sqrt(interval*interval-tick*tick))
	near(t, "generator", source(t, cpu, analysis.ErrorGenerator), math.NaN())

	rec.Run.Environment = nil // a kernel that does not say how it counts
	near(t, "unknown tick", source(t, analysistest.Find(t, report.Analyse(rec, analysis.Options{}), "x", "cpu_per_gbit"), analysis.ErrorTick), math.NaN())
}

// A run that ended by itself has wider intervals, but the parts of its budget are at 95 % like
// those of any run: of a median and of a percentile.
func TestErrorBudgetOfARunThatEndedByItself(t *testing.T) {
	samples := analysistest.Over(12, "x", func(round int) map[string]float64 {
		return map[string]float64{"goodput": 1e9 * float64(100+round), "latency_p50": 1e-6 * float64(100+round)}
	})
	for i := range samples {
		samples[i].Histograms = map[string]*hdrhistogram.Histogram{"latency": analysistest.Histogram(t, int64(100+samples[i].Round), 1000)}
	}
	rec := analysistest.Record(samples...)
	rec.Run.Plan.Rounds = 12
	fixed := report.Analyse(rec, analysis.Options{})
	rec.Run.Plan.Until = 0.05
	ended := report.Analyse(rec, analysis.Options{})
	for _, metric := range []string{"goodput", "latency_p50"} {
		a, b := analysistest.Find(t, fixed, "x", metric), analysistest.Find(t, ended, "x", metric)
		if *a.CI == *b.CI {
			t.Errorf("%s: both intervals are %v", metric, *a.CI)
		}
		near(t, metric, source(t, b, analysis.ErrorRounds), source(t, a, analysis.ErrorRounds))
	}
}

// A latency of 100 µs of which the client's own wake-up is 20 and its late send 5.
func TestErrorBudgetOfLatency(t *testing.T) {
	rec := analysistest.Record(analysistest.Over(6, "x", analysistest.Always(map[string]float64{
		"latency_p50": 100e-6, "service_time_p50": 95e-6, "network_time_p50": 75e-6, "send_lag_p50": 5e-6,
	}))...)
	r := report.Analyse(rec, analysis.Options{})
	latency, network := analysistest.Find(t, r, "x", "latency_p50"), analysistest.Find(t, r, "x", "network_time_p50")
	near(t, "latency", source(t, latency, analysis.ErrorGenerator), 0.25)
	near(t, "network time", source(t, network, analysis.ErrorGenerator), math.NaN())
	near(t, "clock", source(t, network, analysis.ErrorClock), 1.0/1024+1e-9/75e-6)
	if lag := analysistest.Find(t, r, "x", "send_lag_p50"); lag.Errors != nil {
		t.Errorf("a budget of a figure that stands for nothing: %+v", lag.Errors)
	}
}

// Of contenders that can't be told apart, the nearest is named, and how much it would take.
func TestClosest(t *testing.T) {
	wave := func(level float64, turn int) func(int) map[string]float64 {
		return func(round int) map[string]float64 {
			return map[string]float64{"goodput": level * (1 + 0.03*math.Sin(float64(round*turn)))}
		}
	}
	var samples []result.Sample
	for c, of := range map[string]func(int) map[string]float64{"host": wave(30e9, 1), "a": wave(20e9, 2), "b": wave(20.1e9, 5), "c": wave(20.3e9, 3)} {
		samples = append(samples, analysistest.Over(8, c, of)...)
	}
	r := report.Analyse(analysistest.Record(samples...), analysis.Options{})
	for contender, want := range map[string]string{"a": "b", "b": "a", "c": "b"} {
		got := analysistest.Find(t, r, contender, "goodput")
		if got.Closest == nil || got.Closest.Contender != want {
			t.Fatalf("%s: closest is %+v, want %s", contender, got.Closest, want)
		}
		if c := got.Closest; c.MDD == nil || *c.MDD < 0.01 || *c.MDD > 0.2 || c.RoundsFor5 < 6 || c.RoundsFor5 > 60 {
			t.Errorf("%s: %+v", contender, c)
		}
	}
	if host := analysistest.Find(t, r, "host", "goodput"); host.Closest != nil {
		t.Errorf("the host is apart from all, and yet close to %+v", host.Closest)
	}
}
