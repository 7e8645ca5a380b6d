package otherruns_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/analysis/otherruns"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
)

var dir = flag.String("dir", "", "a run directory: its entry of runs.json, and whether cells of its report contradict each other")

// A run as an entry of runs.json: go test ./internal/analysis/otherruns -run TestEntry -v -dir DIR
func TestEntry(t *testing.T) {
	rec, err := result.Load(cmp.Or(*dir, "../../result/testdata/v1-turns"))
	if err != nil {
		t.Fatal(err)
	}
	env := rec.Run.Environment
	r := report.Analyse(rec, analysis.Options{})
	entry := otherruns.Run{
		Started: rec.Run.Started.UTC().Format("2006-01-02T15:04Z"),
		Machine: fmt.Sprintf("CPUs %s (%s), Linux %s", env["cpu.online"], env["cpu.model"], env["kernel.release"]),
		Source:  "run " + rec.Run.ID + " of " + rec.Run.Tool.Version, Rounds: r.Run.Rounds, Ratios: otherruns.RatiosOf(r),
	}
	text, err := json.MarshalIndent(entry, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", text)
}

// realRuns are three demo runs of different hours, each figure by round, as samples; and the run
// that -dir names.
func realRuns(t *testing.T) map[string]*result.Record {
	t.Helper()
	raw, err := os.ReadFile("testdata/rounds.json")
	if err != nil {
		t.Fatal(err)
	}
	var runs map[string]map[string]map[string]map[string][]float64 // run, step, metric, contender
	if err := json.Unmarshal(raw, &runs); err != nil {
		t.Fatal(err)
	}
	records := map[string]*result.Record{}
	for name, steps := range runs {
		samples := map[result.Key]*result.Sample{}
		rec := &result.Record{Run: result.Run{Arena: "lab", Baseline: "host", Plan: result.Plan{Suite: "quick", Until: 0.05}}}
		for _, step := range analysis.SortedKeys(steps) {
			rec.Run.Plan.Steps = append(rec.Run.Plan.Steps, result.Step{ID: step, Path: "pod"})
			for metric, contenders := range steps[step] {
				for contender, values := range contenders {
					for i, v := range values {
						key := result.Key{Contender: contender, Step: step, Round: i + 1}
						if samples[key] == nil {
							samples[key] = &result.Sample{Contender: contender, Step: step, Round: i + 1, Path: "pod", Verdict: result.Valid, Metrics: map[string]float64{}}
						}
						samples[key].Metrics[metric] = v
					}
				}
			}
		}
		for _, s := range samples {
			rec.Samples = append(rec.Samples, *s)
		}
		slices.SortFunc(rec.Samples, func(a, b result.Sample) int {
			return cmp.Or(cmp.Compare(a.Round, b.Round), cmp.Compare(a.Step, b.Step), cmp.Compare(a.Contender, b.Contender))
		})
		records[name] = rec
	}
	if *dir != "" {
		if records[*dir], err = result.Load(*dir); err != nil {
			t.Fatal(err)
		}
	}
	return records
}

// No cell of a real run's report contradicts itself or another: the baseline has no letter
// beside the intervals to it, a ratio is in its interval, and the interval leaves 1 out where p
// says so.
func TestNoCellContradicts(t *testing.T) {
	for name, rec := range realRuns(t) {
		r := report.Analyse(rec, analysis.Options{})
		cells := 0
		for i := range r.Results {
			x := &r.Results[i]
			where := fmt.Sprintf("%s, %s of %s at %s", name, x.Metric, x.Contender, x.Step)
			if x.Contender == r.Baseline && len(x.Letters) > 0 {
				t.Errorf("%s: the baseline has the letters %v", where, x.Letters)
			}
			c := x.VsBaseline
			if c == nil || c.CI == nil {
				continue
			}
			cells++
			if c.Ratio < c.CI[0] || c.Ratio > c.CI[1] {
				t.Errorf("%s: %v is outside its interval %v", where, c.Ratio, *c.CI)
			}
			const rounding = 1e-9
			alpha := 1 - x.Confidence
			apart, touches := c.CI[0] > 1+rounding || c.CI[1] < 1-rounding, c.CI[0] == 1 || c.CI[1] == 1
			if c.P != nil && (apart && *c.P > alpha+rounding || !apart && !touches && *c.P < alpha-rounding) {
				t.Errorf("%s: the interval is %v, and p is %v", where, *c.CI, *c.P)
			}
		}
		if cells < 30 {
			t.Errorf("%s: %d cells with an interval", name, cells)
		}
		t.Logf("%s: %d cells with an interval", name, cells)
	}
}
