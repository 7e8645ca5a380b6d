package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/perf/benchfmt"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/analysis/compare"
	"github.com/cnibench/cnibench/internal/analysis/recommend"
	"github.com/cnibench/cnibench/internal/report/terminal"
	"github.com/cnibench/cnibench/internal/text"
)

func ptr[T any](v T) *T { return &v }

// comparison of two runs with a change of every kind.
func comparedSample() *compare.Comparison {
	change := func(contender, step, metric, unit, better string, old, now, ratio float64) compare.Change {
		return compare.Change{
			Contender: contender, Kernel: "6.18", Underlay: "switch", Step: step, Path: "pod", Metric: metric, Unit: unit, Better: better,
			Old: compare.Side{Median: old, Values: []float64{old * 0.99, old, old * 1.01}}, New: compare.Side{Median: now, Values: []float64{now * 0.99, now, now * 1.01}},
			Ratio: &ratio, CI: &analysis.Interval{ratio * 0.98, ratio * 1.02}, P: ptr(0.0022), PAdjusted: ptr(0.035), Direction: compare.Same,
		}
	}
	fails := change("flannel-vxlan", "dts", "goodput", "bit/s", "higher", 16.9e9, 8.4e9, 0.5)
	fails.Direction, fails.Sure, fails.Failed = compare.Worse, true, true
	worse := change("flannel-vxlan", "dts", "cpu_per_gbit", "CPU-s/Gbit", "lower", 0.093, 0.096, 1.03)
	worse.Direction, worse.Sure = compare.Worse, true
	maybe := change("macvlan", "http-350-5k", "latency_p99", "s", "lower", 160e-6, 170e-6, 1.06)
	maybe.Direction, maybe.PAdjusted = compare.Worse, ptr(0.3)
	few := change("macvlan", "http-350-5k", "latency_p99_9", "s", "lower", 1e-3, 2e-3, 2)
	few.Direction, few.CI, few.P, few.PAdjusted = compare.Unknown, nil, nil, nil
	zero := change("macvlan", "dts", "retransmits", "count", "lower", 0, 12, 1)
	zero.Direction, zero.Ratio, zero.CI = compare.Worse, nil, nil
	same := change("host", "dts", "goodput", "bit/s", "higher", 33e9, 33.1e9, 1.003)
	wide := change("host", "dts", "cpu_per_gbit", "CPU-s/Gbit", "lower", 0.045, 0.0432, 0.96)
	wide.CI = &analysis.Interval{0.92, 1.04}
	better := change("calico-noencap", "dts", "goodput", "bit/s", "higher", 26e9, 29e9, 1.12)
	better.Direction, better.Sure = compare.Better, true
	return &compare.Comparison{
		Schema:     compare.Schema,
		Old:        compare.Run{ID: "before", Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Suite: "quick", Arena: "lab", Rounds: 6, Baseline: "host", Tool: "1.0"},
		New:        compare.Run{ID: "after", Started: time.Date(2026, 1, 3, 3, 4, 5, 0, time.UTC), Suite: "quick", Arena: "lab", Rounds: 6, Baseline: "host", Tool: "1.0"},
		Confidence: 0.95, FailOn: ptr(0.05), Passed: ptr(false),
		Differences: []compare.Difference{{Key: "environment.kernel.release", Old: "6.18", New: ""}},
		Changes:     []compare.Change{fails, worse, maybe, zero, few, same, better, wide},
		Missing: []compare.Missing{
			{Contender: "canal", Underlay: "switch", Step: "dts", From: "new", Text: "the new run has no valid sample", Failed: true},
			{Contender: "kilo", Underlay: "switch", Step: "dts", Metric: "goodput", From: "old", Text: "not in the old run's plan"},
		},
		Faults: []compare.RunFault{{From: "old", Text: "samples.jsonl line 7: bad sample"}, {From: "new", Text: "2 of 48 planned samples are missing", Failed: true}},
		Notes:  []string{"the runs were made by different versions of cnibench: 1.0 and 1.1"},
	}
}

func hostileComparison() *compare.Comparison {
	c := comparedSample()
	c.New.ID = "<b>\x1b[31m|x"
	c.Changes[0].Contender, c.Changes[0].Step = "<script>&\x00", "a|b\nc"
	c.Missing[0].Contender = "`]]>"
	c.Differences[0].Key = "[x](http://evil.example)"
	return c
}

func writeCompare(t *testing.T, format string, c *compare.Comparison, opt Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteCompare(&b, format, c, opt); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCompareGolden(t *testing.T) {
	passed := comparedSample()
	passed.Passed, passed.Changes, passed.Missing, passed.Faults = ptr(true), passed.Changes[5:], nil, nil
	few := comparedSample()
	few.Changes, few.Missing, few.Faults, few.Differences = slices.Repeat(few.Changes[3:4], shownRows+1), nil, nil, nil
	few.Unable, few.Enough = len(few.Changes), 7
	for i := range few.Changes {
		few.Changes[i].Direction, few.Changes[i].Ratio = compare.Unknown, ptr(1.01)
	}
	few.Changes[0].Ratio = ptr(2.0)
	ratios := comparedSample()
	ratios.VsBaseline, ratios.FailOn, ratios.Passed = true, nil, nil
	ratios.Changes = ratios.Changes[:1]
	ratios.Changes[0].Old.Median, ratios.Changes[0].New.Median = 0.51, 0.26
	extension := map[string]string{"text": "txt", "benchstat": "bench", "junit": "xml"}
	for name, c := range map[string]*compare.Comparison{"compare": comparedSample(), "compare-passed": passed, "compare-ratios": ratios, "compare-hostile": hostileComparison(), "compare-few": few} {
		for _, format := range CompareFormats() {
			ext := extension[format]
			if ext == "" {
				ext = format
			}
			if format == "benchstat" || name != "compare" && format != "text" && !(name == "compare-hostile" && format != "json") {
				continue // nothing of their own to show
			}
			t.Run(name+"/"+format, func(t *testing.T) { golden(t, name+"."+ext, writeCompare(t, format, c, Options{})) })
		}
	}
}

// CI systems read what an XML reader makes of it.
func TestCompareJUnit(t *testing.T) {
	for name, c := range map[string]*compare.Comparison{"plain": comparedSample(), "hostile": hostileComparison()} {
		var got junitSuites
		text := writeCompare(t, "junit", c, Options{})
		if err := xml.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		tests, failures, skipped := 0, 0, 0
		for _, s := range got.Suites {
			if s.Tests != len(s.Cases) {
				t.Errorf("%s: suite %s says %d tests, has %d", name, s.Name, s.Tests, len(s.Cases))
			}
			tests, failures, skipped = tests+s.Tests, failures+s.Failures, skipped+s.Skipped
		}
		if tests != 12 || got.Tests != 12 || failures != 3 || got.Failures != 3 || skipped != 2 || got.Skipped != 2 {
			t.Errorf("%s: %d tests, %d failures, %d skipped; the head says %d, %d, %d", name, tests, failures, skipped, got.Tests, got.Failures, got.Skipped)
		}
	}
}

func TestCompareBenchstat(t *testing.T) {
	r := benchfmt.NewReader(strings.NewReader(writeCompare(t, "benchstat", comparedSample(), Options{})), "x")
	runs := map[string]int{}
	for r.Scan() {
		switch rec := r.Result().(type) {
		case *benchfmt.Result:
			runs[rec.GetConfig("run")]++
		case *benchfmt.SyntaxError:
			t.Error(rec)
		}
	}
	if runs["old:before"] != 24 || runs["new:after"] != 24 {
		t.Errorf("values by run: %v", runs)
	}
}

// What shows no change is only counted where there is much of it.
func TestCompareFoldsTheSame(t *testing.T) {
	c := comparedSample()
	for range 40 {
		c.Changes = append(c.Changes, c.Changes[5])
	}
	text := writeCompare(t, "text", c, Options{})
	if strings.Contains(text, "= same") || !strings.Contains(text, "42 figures without a change") {
		t.Error(text)
	}
}

func TestCompareErrors(t *testing.T) {
	var unknown *text.UnknownError
	if err := WriteCompare(io.Discard, "junt", comparedSample(), Options{}); !errors.As(err, &unknown) {
		t.Errorf("unknown format: %v", err)
	}
	for _, format := range CompareFormats() {
		if err := WriteCompare(fullDisk{}, format, comparedSample(), Options{}); !errors.Is(err, errFull) {
			t.Errorf("%s on a full disk: %v", format, err)
		}
	}
}

var errFull = errors.New("full")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestRecommendGolden(t *testing.T) {
	choice := func(name string, score, wins float64, reasons ...string) analysis.Choice {
		return analysis.Choice{
			Contender: name, Score: score, Wins: &wins, CI: &analysis.Interval{score * 0.95, score * 1.05}, Reasons: reasons,
			Terms: []analysis.Term{{Criterion: "throughput", Weight: 1, Ratio: score * 1.1, CI: &analysis.Interval{score, score * 1.2}}, {Criterion: "cpu", Weight: 1, Ratio: score / 1.1}},
		}
	}
	r := &analysis.Recommendation{
		Schema: analysis.RecommendSchema, Run: "quick-run", Baseline: "host", Kernel: "6.18", Underlay: "switch", Needs: []string{analysis.Active, "policy"},
		Weights:   []analysis.Weight{{Criterion: "throughput", Weight: 1}, {Criterion: "cpu", Weight: 1}},
		Ranked:    []analysis.Choice{choice("calico-noencap", 0.8, 0.83, "as good as any in throughput and cpu"), choice("canal", 0.7, 0.17, "cpu 0.64× against 0.73× of calico-noencap")},
		Lost:      []analysis.Loss{{Contender: "macvlan", Need: "policy", Reason: "not so, by the catalogue", Source: "catalogue"}, {Contender: "flannel-vxlan", Need: "policy", Reason: "not so, by the catalogue", Source: "catalogue"}},
		Unknown:   []analysis.Loss{{Contender: "cilium", Reason: "the lab has no eBPF attachment yet", Source: "measured"}},
		Resamples: 1000, Confidence: 0.95, Firmness: analysis.Leaning, Notes: []string{"memory does not count: the run has no figure of it"},
	}
	apart := *r
	other := *r
	other.Underlay, other.Ranked, other.Firmness = "vpc", r.Ranked[:1], analysis.Alone
	apart.Others = []analysis.Recommendation{other}
	few := *r
	few.Ranked = slices.Clone(r.Ranked)
	for i := range few.Ranked {
		few.Ranked[i].Wins, few.Ranked[i].CI = nil, nil
	}
	few.Alike = []string{"calico-noencap", "canal"}
	few.Firmness, few.Lost = analysis.Untested, append(few.Lost, analysis.Loss{Contender: "antrea", Need: "low-memory", Reason: "520 MiB over host when idle", Source: "measured"},
		analysis.Loss{Contender: "cilium", Need: "low-memory", Reason: "561 MiB over host when idle", Source: "measured"})
	alike := *r
	alike.Firmness, alike.Alike, alike.Ignored = analysis.Alike, []string{"calico-noencap", "canal", "cilium"}, []string{"latency", "memory"}
	wide := *r
	wide.Weights, wide.Ranked = nil, slices.Clone(r.Ranked)
	for i := range wide.Ranked {
		wide.Ranked[i].Terms = nil
	}
	for _, name := range recommend.CriterionNames() {
		wide.Weights = append(wide.Weights, analysis.Weight{Criterion: name, Weight: 1})
		for i := range wide.Ranked {
			wide.Ranked[i].Contender = []string{"calico-noencap-with-a-long-name", "canal"}[i]
			wide.Ranked[i].Terms = append(wide.Ranked[i].Terms, analysis.Term{Criterion: name, Weight: 1, Ratio: 0.7})
		}
	}
	none := *r
	none.Ranked, none.Firmness = []analysis.Choice{}, analysis.Nobody
	for name, r := range map[string]*analysis.Recommendation{"recommend": r, "recommend-apart": &apart, "recommend-nobody": &none, "recommend-few": &few, "recommend-alike": &alike, "recommend-wide": &wide} {
		for format, ext := range map[string]string{"text": "txt", "md": "md"} {
			t.Run(name+"/"+format, func(t *testing.T) {
				var b bytes.Buffer
				if err := WriteRecommendation(&b, format, r, Options{}); err != nil {
					t.Fatal(err)
				}
				golden(t, name+"."+ext, b.String())
				for _, line := range strings.Split(b.String(), "\n") {
					if n := utf8.RuneCountInString(line); format == "text" && n > terminal.MaxWidth {
						t.Errorf("a line of %d columns: %s", n, line)
					}
				}
			})
		}
	}
}

// What analysis itself gives is what the schemas describe.
func TestChoiceSchemas(t *testing.T) {
	for name, file := range map[string]string{
		"compare-1": "../analysis/compare/testdata/compare.json", "recommend-1": "../analysis/recommend/testdata/recommend.json",
	} {
		s, err := jsonschema.NewCompiler().Compile("../../docs/schema/" + name + ".schema.json")
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(doc); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		doc.(map[string]any)["more"] = 1
		if err := s.Validate(doc); err == nil {
			t.Errorf("%s: an unknown key passes", name)
		}
	}
}
