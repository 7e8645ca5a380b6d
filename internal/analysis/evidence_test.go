package analysis_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testutil/analysistest"
)

func TestAssembleGolden(t *testing.T) {
	got, err := json.MarshalIndent(report.Analyse(analysistest.Synthetic(), analysis.Options{}), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	golden := filepath.Join("testdata", "synthetic.json")
	if *analysistest.Update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	var wantReport, gotReport any
	if err := json.Unmarshal(want, &wantReport); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(got, &gotReport); err != nil {
		t.Fatal(err)
	}
	// Other architectures round the last digit otherwise (fused operations).
	if diff := cmp.Diff(wantReport, gotReport, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Errorf("report differs from %s (-want +got); -update writes it:\n%s", golden, diff)
	}
}

// The order of the samples file must not matter, nor may the record change.
func TestAssembleKeepsItsInput(t *testing.T) {
	rec, reversed := analysistest.Synthetic(), analysistest.Synthetic()
	want := report.Analyse(rec, analysis.Options{})
	if diff := cmp.Diff(analysistest.Synthetic(), rec); diff != "" {
		t.Errorf("the record changed:\n%s", diff)
	}
	slices.Reverse(reversed.Samples)
	if diff := cmp.Diff(want.Results, report.Analyse(reversed, analysis.Options{}).Results); diff != "" {
		t.Errorf("the results depend on the order of samples:\n%s", diff)
	}
}

func TestPairing(t *testing.T) {
	// The machine halves its speed in round 2; within rounds nothing changes.
	rec := &result.Record{Run: result.Run{Baseline: "host"}}
	for round, speed := range []float64{10, 5, 10} {
		rec.Samples = append(rec.Samples,
			analysistest.ValidSample("host", round+1, map[string]float64{"goodput": speed}),
			analysistest.ValidSample("x", round+1, map[string]float64{"goodput": speed * 0.8}))
	}
	rec.Samples = append(rec.Samples, analysistest.ValidSample("x", 4, map[string]float64{"goodput": 100})) // no baseline beside it
	r := report.Analyse(rec, analysis.Options{})

	p := 0.25
	got := analysistest.Find(t, r, "x", "goodput")
	want := &analysis.Comparison{Ratio: 0.8, P: &p, Pairs: 3}
	if diff := cmp.Diff(want, got.VsBaseline); diff != "" {
		t.Errorf("ratio to the baseline (-want +got):\n%s", diff)
	}
	if got.N != 4 || got.CI != nil {
		t.Errorf("n = %d, ci = %v; want 4 rounds and no interval", got.N, got.CI)
	}
	if host := analysistest.Find(t, r, "host", "goodput"); host.VsBaseline != nil {
		t.Errorf("the baseline is compared with itself: %+v", host.VsBaseline)
	}
}

func TestComparisonThatCannotBe(t *testing.T) {
	rec := &result.Record{Run: result.Run{Baseline: "host"}, Samples: []result.Sample{
		analysistest.ValidSample("host", 1, map[string]float64{"retransmits": 0}),
		analysistest.ValidSample("x", 1, map[string]float64{"retransmits": 7}),
	}}
	if got := analysistest.Find(t, report.Analyse(rec, analysis.Options{}), "x", "retransmits"); got.VsBaseline != nil {
		t.Errorf("a ratio to zero: %+v", got.VsBaseline)
	}
}

// A network that moves four times as much and sends twice as many segments again is the
// better one: retransmits are judged by what was received.
func TestRetransmitsAreByTraffic(t *testing.T) {
	const gib = 8 * (1 << 30) // bits
	rec := analysistest.Record(append(
		analysistest.Over(6, "host", analysistest.Always(map[string]float64{"goodput": 4 * gib, "retransmits": 80})),
		analysistest.Over(6, "x", analysistest.Always(map[string]float64{"goodput": gib, "retransmits": 40}))...)...)
	r := report.Analyse(rec, analysis.Options{})
	for contender, want := range map[string]float64{"host": 2, "x": 4} { // in 10 s
		if got := analysistest.Find(t, r, contender, result.RetransmitsPerGiB); got.Median != want || !got.Ranked {
			t.Errorf("%s: %v by GiB, ranked %v; want %v, ranked", contender, got.Median, got.Ranked, want)
		}
		if got := analysistest.Find(t, r, contender, result.Retransmits); got.Ranked {
			t.Errorf("%s: the count is ranked", contender)
		}
	}
	if got := analysistest.Find(t, r, "x", result.RetransmitsPerGiB).VsBaseline; got == nil || got.Ratio != 2 {
		t.Errorf("ratio %+v, want 2", got)
	}
}

func TestGroupsStayApart(t *testing.T) {
	rec := &result.Record{Run: result.Run{Baseline: "host"}}
	for _, underlay := range []string{"switch", "vpc"} {
		for _, contender := range []string{"host", "x"} {
			s := analysistest.ValidSample(contender, 1, map[string]float64{"goodput": 8})
			if s.Underlay = underlay; underlay == "vpc" {
				s.Metrics["goodput"] = 2
				if contender == "x" {
					s.Metrics["goodput"] = 1
				}
			}
			rec.Samples = append(rec.Samples, s)
		}
	}
	for _, res := range report.Analyse(rec, analysis.Options{}).Results {
		if res.Contender == "x" {
			want := map[string]float64{"switch": 1, "vpc": 0.5}[res.Underlay]
			if res.VsBaseline == nil || res.VsBaseline.Ratio != want {
				t.Errorf("on %s the ratio is %+v, want %v", res.Underlay, res.VsBaseline, want)
			}
		}
	}
}

func TestRanks(t *testing.T) {
	around := func(center float64, n int) analysis.Series {
		s := analysis.Series{}
		for i := range n {
			s[i+1] = center * (1 + 0.01*float64((i*3)%n-n/2))
		}
		return s
	}
	scaled := func(s analysis.Series, factor float64) analysis.Series {
		out, sign := analysis.Series{}, 1.0
		for _, round := range s.Rounds() {
			out[round] = s[round] * (factor + sign*0.002)
			sign = -sign
		}
		return out
	}
	tests := []struct {
		name       string
		better     string
		unpaired   bool
		contenders map[string]analysis.Series
		want       map[string]string // tier and letters
	}{
		{"three levels, higher is better", "higher", false,
			map[string]analysis.Series{"a": around(10, 6), "b": around(5, 6), "c": around(1, 6)},
			map[string]string{"a": "1 a", "b": "2 b", "c": "3 c"}},
		{"lower is better", "lower", false,
			map[string]analysis.Series{"a": around(10, 6), "b": around(5, 6), "c": around(1, 6)},
			map[string]string{"a": "3 c", "b": "2 b", "c": "1 a"}},
		{"two that can't be told apart", "higher", false,
			map[string]analysis.Series{"a": around(10, 6), "b": scaled(around(10, 6), 1.0005), "c": around(1, 6)},
			map[string]string{"a": "1 a", "b": "1 a", "c": "2 b"}},
		{"one between two", "higher", false,
			map[string]analysis.Series{
				"a": {1: 10, 2: 10.4, 3: 9.8, 4: 10.1, 5: 10, 6: 10.3, 7: 9.9},
				"b": {1: 9.5, 2: 10.6, 3: 9.2, 4: 9.9, 5: 10.2, 6: 9.6, 7: 9.7},
				"c": {1: 9.3, 2: 9.6, 3: 9.2, 4: 9.5, 5: 9.2, 6: 9.6, 7: 9.3},
			},
			map[string]string{"a": "1 a", "b": "1 ab", "c": "2 b"}},
		{"what rounds do to all cancels out", "higher", false,
			map[string]analysis.Series{
				"a": {1: 30, 2: 10, 3: 20, 4: 12, 5: 28, 6: 18, 7: 25},
				"b": {1: 28, 2: 9.3, 3: 18.7, 4: 11.2, 5: 26.1, 6: 16.7, 7: 23.4},
			},
			map[string]string{"a": "1 a", "b": "2 b"}},
		{"too few rounds for anything", "higher", false,
			map[string]analysis.Series{"a": around(10, 5), "b": around(1, 5)}, map[string]string{}},
		{"one with too few rounds, thirty times slower", "higher", false,
			map[string]analysis.Series{"a": around(10, 7), "b": scaled(around(10, 7), 1.0005), "c": {1: 0.3, 2: 0.31, 4: 0.3, 5: 0.29, 7: 0.3}},
			map[string]string{"a": "1 a", "b": "1 a"}},
		{"four rounds are enough for two where they are no pairs", "higher", true,
			map[string]analysis.Series{"a": around(10, 4), "b": around(1, 4)},
			map[string]string{"a": "1 a", "b": "2 b"}},
		{"too few for one where they are no pairs", "higher", true,
			map[string]analysis.Series{"a": around(10, 6), "b": around(1, 6), "c": around(0.1, 2)},
			map[string]string{"a": "1 a", "b": "2 b"}},
		{"one alone", "higher", false, map[string]analysis.Series{"a": {1: 10, 2: 11}}, map[string]string{"a": "1 a"}},
		{"one alone, one round", "higher", false, map[string]analysis.Series{"a": {1: 10}}, map[string]string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := analysis.Collect(&result.Record{Run: result.Run{Plan: result.Plan{Unpaired: tt.unpaired}}}, analysis.Options{}.Complete(&result.Plan{}))
			got := map[string]string{}
			for c, rank := range e.Ranks(analysis.FigureKey{}, tt.contenders, tt.better) {
				got[c] = fmt.Sprintf("%d %s", rank.Tier, strings.Join(rank.Letters, ""))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("ranks (-want +got):\n%s", diff)
			}
		})
	}
}

// Contenders that are all the same must share a group at least as often as alpha
// says, whether rounds are pairs or not.
func TestFalseGroups(t *testing.T) {
	const trials, alpha = 300, 0.05
	for _, unpaired := range []bool{false, true} {
		r := rand.New(rand.NewPCG(1, 2))
		e := analysis.Collect(&result.Record{Run: result.Run{Plan: result.Plan{Unpaired: unpaired}}}, analysis.Options{Alpha: alpha}.Complete(&result.Plan{}))
		wrong := 0
		for range trials {
			contenders := map[string]analysis.Series{}
			for c := range 8 {
				s := analysis.Series{}
				for round := range 8 {
					s[round+1] = math.Exp(r.NormFloat64())
				}
				contenders[string(rune('a'+c))] = s
			}
			for _, rank := range e.Ranks(analysis.FigureKey{}, contenders, "higher") {
				if rank.Tier > 1 || len(rank.Letters) > 1 {
					wrong++
					break
				}
			}
		}
		if share := float64(wrong) / trials; share > alpha+3*math.Sqrt(alpha*(1-alpha)/trials) {
			t.Errorf("unpaired %v: a second group in %.3f of the trials without any difference", unpaired, share)
		}
	}
}

func TestRoundsForRanks(t *testing.T) {
	for contenders, want := range map[int][2]int{1: {1, 1}, 2: {6, 4}, 3: {6, 5}, 8: {6, 7}} {
		got := [2]int{analysis.RoundsForRanks(contenders, false, 0.05), analysis.RoundsForRanks(contenders, true, 0.05)}
		if got != want {
			t.Errorf("%d contenders need %d rounds, want %d (paired, unpaired)", contenders, got, want)
		}
	}
}

func TestMemoryOverhead(t *testing.T) {
	rec := &result.Record{Run: result.Run{Baseline: "host"}}
	for round, used := range []float64{100, 200, 300} {
		for contender, more := range map[string]float64{"host": 0, "x": 7} {
			s := analysistest.ValidSample(contender, round+1, map[string]float64{"memory_used": used + more, "memory_overhead": 999})
			s.Step, s.Workload = "idle", "idle"
			rec.Samples = append(rec.Samples, s)
		}
	}
	r := report.Analyse(rec, analysis.Options{})
	if got := analysistest.Find(t, r, "x", "memory_overhead"); !slices.Equal(got.Values, []float64{7, 7, 7}) {
		t.Errorf("memory_overhead = %v, want 7 in every round", got.Values)
	} else if got.Tier != 0 {
		t.Errorf("memory_overhead is in tier %d", got.Tier)
	}
	for _, res := range r.Results {
		if res.Contender == "host" && res.Metric == "memory_overhead" {
			t.Error("the baseline has an overhead over itself")
		}
	}
}

func TestCurves(t *testing.T) {
	rec := &result.Record{}
	for round, us := range []int64{100, 100, 500} {
		s := analysistest.ValidSample("host", round+1, nil)
		s.Histograms = map[string]*hdrhistogram.Histogram{"latency": analysistest.Histogram(t, us, 4000)}
		rec.Samples = append(rec.Samples, s)
	}
	spoiled := analysistest.ValidSample("host", 4, nil)
	spoiled.Verdict = result.Invalid
	spoiled.Histograms = map[string]*hdrhistogram.Histogram{"latency": analysistest.Histogram(t, 9e6, 4000)}
	rec.Samples = append(rec.Samples, spoiled)

	list := report.Analyse(rec, analysis.Options{}).Curves
	if len(list) != 1 || list[0].Count != 12000 || list[0].Clock != "latency" {
		t.Fatalf("curves = %+v, want one of 12000 values", list)
	}
	points := map[float64]float64{}
	for _, p := range list[0].Points {
		points[p.Percentile] = p.Seconds
	}
	// Two thirds of all are at 100 µs: the merged median is theirs, the 70th
	// percentile the third round's; a mean of percentiles would be neither.
	for percentile, want := range map[float64]float64{50: 100e-6, 60: 100e-6, 70: 500e-6, 99.9: 500e-6} {
		if got := points[percentile]; math.Abs(got/want-1) > 0.001 {
			t.Errorf("p%v = %v s, want %v", percentile, got, want)
		}
	}
	if _, shown := points[99.99]; shown {
		t.Error("p99.99 is shown with 1.2 values beyond it")
	}
}

func TestEmptyRun(t *testing.T) {
	r := report.Analyse(&result.Record{}, analysis.Options{})
	if r.Results == nil || r.Findings == nil || r.Unsupported == nil {
		t.Error("an empty list is nil: its JSON would be null")
	}
}
