package findings_test

import (
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/analysis/findings"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testutil/analysistest"
)

// One valid round of seven looked like a full figure.
func TestSurvivors(t *testing.T) {
	var samples []result.Sample
	for round := 1; round <= 7; round++ {
		samples = append(samples,
			analysistest.ValidSample("host", round, map[string]float64{"goodput": 2e10}), analysistest.ValidSample("y", round, map[string]float64{"goodput": 2e10}))
		if round == 3 {
			samples = append(samples, analysistest.ValidSample("x", round, map[string]float64{"goodput": 3e10}))
		} else {
			samples = append(samples, analysistest.Invalid("x", round, "cpu_steal", "25 %"))
		}
	}
	rep := report.Analyse(analysistest.Record(samples...), analysis.Options{})
	if r := analysistest.Find(t, rep, "x", "goodput"); r.N != 1 || r.Of != 7 {
		t.Errorf("x is of %d of %d rounds, want 1 of 7", r.N, r.Of)
	}
	if r := analysistest.Find(t, rep, "y", "goodput"); r.N != 7 || r.Of != 7 {
		t.Errorf("y is of %d of %d rounds, want 7 of 7", r.N, r.Of)
	}
	analysistest.CheckFindings(t, rep.Findings, "uneven_exclusion", []analysis.Finding{{Severity: analysis.Warn, Step: "dts",
		Text: "0.00039 7 7 1 7 7 7"}})
}

// A late sender spoils the latency of its samples and not their network time.
func TestSpoiledClocks(t *testing.T) {
	late := []result.Reason{{Code: "load_generator_late", Text: "3 % late"}}
	var samples []result.Sample
	for round := 1; round <= 6; round++ {
		for _, c := range []string{"host", "x"} {
			s := analysistest.ValidSample(c, round, map[string]float64{"latency_p50": 1e-3, "network_time_p50": 1e-4})
			if c == "x" && round > 1 {
				s.DropGeneratorClocks(late)
			}
			samples = append(samples, s)
		}
	}
	rep := report.Analyse(analysistest.Record(samples...), analysis.Options{})
	if r := analysistest.Find(t, rep, "x", "latency_p50"); r.N != 1 || r.Of != 6 {
		t.Errorf("the latency is of %d of %d rounds, want 1 of 6", r.N, r.Of)
	}
	if r := analysistest.Find(t, rep, "x", "network_time_p50"); r.N != 6 || r.Of != 6 {
		t.Errorf("the network time is of %d of %d rounds, want 6 of 6", r.N, r.Of)
	}
	analysistest.CheckFindings(t, rep.Findings, "client_late", []analysis.Finding{{Severity: analysis.Warn, Contender: "x", Step: "dts", Excluded: true,
		Text: "5 6 3"}})
	analysistest.CheckFindings(t, rep.Findings, "uneven_exclusion", []analysis.Finding{{Severity: analysis.Warn, Step: "dts",
		Text: "0.015 6 6 1 6"}})
}

// Ten requests beyond a percentile are not ten if they come of one stall.
func TestOneStallTail(t *testing.T) {
	var samples []result.Sample
	for round := 1; round <= 7; round++ {
		for _, c := range []string{"host", "x"} {
			s := analysistest.ValidSample(c, round, nil)
			s.Histograms = map[string]*hdrhistogram.Histogram{"latency": analysistest.Tail(t, 100, 1000, 300, 20)}
			if c == "x" && round == 2 {
				s.Histograms["latency"] = analysistest.Tail(t, 100, 1000, 9000, 100)
			}
			samples = append(samples, s)
		}
	}
	rep := report.Analyse(analysistest.Record(samples...), analysis.Options{})
	analysistest.CheckFindings(t, rep.Findings, "one_stall_tail", []analysis.Finding{{Severity: analysis.Warn, Contender: "x", Step: "dts",
		Text: "99"}})
}

// each returns what the rules find in a run, a finding for each place.
func each(rec *result.Record, opt analysis.Options) []analysis.Finding {
	return findings.Each(analysis.Collect(rec, opt.Complete(&rec.Run.Plan)))
}
