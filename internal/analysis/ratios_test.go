package analysis_test

import (
	"math"
	"testing"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/analysis/findings"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testutil/analysistest"
)

// measuredApart is three rounds of a baseline and of one contender that is
// steady at 20 while the baseline's second round is an outlier.
func measuredApart() *result.Record {
	rec := analysistest.Record()
	for round, base := range []float64{32e9, 28e9, 34e9} {
		rec.Samples = append(rec.Samples,
			analysistest.ValidSample("host", round+1, map[string]float64{"goodput": base, "retransmits": float64(round)}),
			analysistest.ValidSample("x", round+1, map[string]float64{"goodput": []float64{18e9, 23e9, 21e9}[round], "retransmits": 7}))
	}
	rec.Run.Plan.Rounds = 3
	return rec
}

// Rounds that are no pairs must give the same ratio in whatever order they are
// numbered.
func TestUnpairedRatio(t *testing.T) {
	paired := measuredApart()
	if got := analysistest.Find(t, report.Analyse(paired, analysis.Options{}), "x", "goodput").VsBaseline.Ratio; math.Abs(got-math.Sqrt(21.0/34*math.Sqrt(18.0/32*23/28))) > 1e-9 {
		t.Errorf("paired %v", got)
	}
	rec := measuredApart()
	rec.Run.Plan.Unpaired = true
	first := analysistest.Find(t, report.Analyse(rec, analysis.Options{}), "x", "goodput").VsBaseline
	if math.Abs(first.Ratio-21.0/32) > 1e-9 || first.CI != nil || first.P == nil || *first.P != 0.1 {
		t.Errorf("all pairs: %+v", first)
	}
	for i := range rec.Samples {
		if s := &rec.Samples[i]; s.Contender == "x" {
			s.Round = s.Round%3 + 1
		}
	}
	if again := analysistest.Find(t, report.Analyse(rec, analysis.Options{}), "x", "goodput").VsBaseline; again.Ratio != first.Ratio {
		t.Errorf("numbered otherwise %v, was %v", again.Ratio, first.Ratio)
	}
}

// Enough rounds give an unpaired ratio an interval.
func TestUnpairedInterval(t *testing.T) {
	rec := analysistest.Record(append(analysistest.Over(4, "host", analysistest.Always(map[string]float64{"goodput": 10})), analysistest.Over(4, "x", analysistest.Always(map[string]float64{"goodput": 8}))...)...)
	rec.Run.Plan.Unpaired = true
	got := analysistest.Find(t, report.Analyse(rec, analysis.Options{}), "x", "goodput")
	if c := got.VsBaseline; c.CI == nil || c.Ratio != 0.8 || *c.CI != (analysis.Interval{0.8, 0.8}) {
		t.Errorf("%+v", c)
	}
}

// A path that the baseline of others' runs lacks is held against the same load
// from pod to pod, and is no gap.
func TestStandIn(t *testing.T) {
	rec := measuredApart()
	rec.Run.Plan.Unpaired, rec.Run.Arena = true, "imported"
	rec.Run.Plan.Contenders = []result.Entry{{ID: "host"}, {ID: "x"}}
	rec.Run.Plan.Steps = []result.Step{
		{ID: "dts", Workload: "tcp_stream", Path: "pod", Params: map[string]any{"streams": 1.0}},
		{ID: "sts", Workload: "tcp_stream", Path: "service", Params: map[string]any{"streams": 1.0}},
	}
	s := analysistest.ValidSample("x", 1, map[string]float64{"goodput": 16e9})
	s.Step, s.Path = "sts", "service"
	for s.Round = 1; s.Round <= 3; s.Round++ {
		rec.Samples = append(rec.Samples, s)
	}
	r := report.Analyse(rec, analysis.Options{})
	for _, got := range r.Results {
		if c := got.VsBaseline; got.Step == "sts" && (c == nil || c.Ratio != 0.5 || c.Step != "dts") {
			t.Errorf("%+v", c)
		}
	}
	analysistest.CheckFindings(t, r.Findings, "no_baseline", []analysis.Finding{{Severity: analysis.Info, Contender: "host", Text: "1"}})
	analysistest.CheckFindings(t, r.Findings, "incomplete_run", []analysis.Finding{{Severity: analysis.Info, Contender: "host",
		Text: ""}})
}

// A path that the plan leaves the baseline out of is held against the same
// load from pod to pod of the same round.
func TestStandInOfARound(t *testing.T) {
	rec := measuredApart()
	rec.Run.Plan.Contenders = []result.Entry{{ID: "host"}, {ID: "x"}}
	rec.Run.Plan.Steps = []result.Step{
		{ID: "dts", Workload: "tcp_stream", Path: "pod", Params: map[string]any{"streams": 1.0}},
		{ID: "sts", Workload: "tcp_stream", Path: "service", Params: map[string]any{"streams": 1.0}, Services: 100},
	}
	rec.Run.Plan.Gaps = []result.Gap{{Contender: "host", Step: "sts"}}
	for round, goodput := range []float64{8e9, 7e9, 8.5e9} { // a quarter of the host's in each
		s := analysistest.ValidSample("x", round+1, map[string]float64{"goodput": goodput, "service_sync_time": 2})
		s.Step, s.Path = "sts", "service"
		rec.Samples = append(rec.Samples, s)
	}
	r := report.Analyse(rec, analysis.Options{})
	for _, got := range r.Results {
		switch c := got.VsBaseline; {
		case got.Step != "sts":
		case got.Metric == "goodput" && (c == nil || c.Ratio != 0.25 || c.Step != "dts"):
			t.Errorf("goodput: %+v", c)
		case got.Metric == "service_sync_time" && c != nil:
			t.Errorf("service_sync_time, which the host has none of: %+v", c)
		}
	}
	analysistest.CheckFindings(t, r.Findings, "no_baseline", []analysis.Finding{{Severity: analysis.Info, Contender: "host", Text: "1"}})
	analysistest.CheckFindings(t, r.Findings, "incomplete_run", nil)
}

// No ratio is left out in silence.
func TestZeroBaseline(t *testing.T) {
	analysistest.CheckFindings(t, findings.Each(analysis.Collect(measuredApart(), analysis.Options{Confidence: 0.95, Alpha: 0.05})), "no_baseline", []analysis.Finding{{Severity: analysis.Info, Contender: "host",
		Text: "1"}})
}

// A datagram rate says nothing of the path while nobody counted the loss.
func TestUncountedLoss(t *testing.T) {
	rec := measuredApart()
	rec.Run.Plan.Steps = []result.Step{{ID: "dts", Workload: "udp_stream", Path: "pod"}}
	if got := analysistest.Find(t, report.Analyse(rec, analysis.Options{}), "x", "goodput"); got.Ranked || got.Tier != 0 || got.VsBaseline != nil {
		t.Errorf("ranked: %+v", got)
	}
}

// Three rounds tell nobody apart, and one tier of all would say that they are
// alike.
func TestNoTiersOfThreeRounds(t *testing.T) {
	for _, r := range report.Analyse(measuredApart(), analysis.Options{}).Results {
		if r.Metric == "goodput" && (!r.Ranked || r.Tier != 0) {
			t.Errorf("%+v", r)
		}
	}
}
