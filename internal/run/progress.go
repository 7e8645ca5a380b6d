package run

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/bench"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text/console"
	"github.com/cnibench/cnibench/internal/unit"
)

// This file reads a run that goes on: the report of what is sealed so far, and what the
// terminal shows of it. It changes nothing of the run.

// preview shows the comparison during the run: on a terminal the report's tables, after
// each step of the first round and after each later round; elsewhere one line after
// each round.
type preview struct {
	Bar      *console.Progress
	Interim  *interim
	Plan     *result.Plan
	Baseline string

	done  int // steps at the last update
	shown progress
}

// progress is how far a run has come.
type progress struct {
	comparable bool // the baseline and another contender have taken the same step in the same round
	rounds     int  // that are finished
	first      int  // samples of steps of the first round
}

// Wrap returns a function that updates the preview after each step, and then calls
// then. The runner calls it between steps, when reading the samples disturbs no
// measurement.
func (p *preview) Wrap(then func(bench.Progress)) func(bench.Progress) {
	return func(at bench.Progress) {
		if at.Done != p.done {
			p.done = at.Done
			p.update()
		}
		then(at)
	}
}

func (p *preview) update() {
	current, before := progressOf(p.Plan, p.Baseline, p.Interim.Store.SealedKeys()), p.shown
	p.shown = current
	live := p.Bar.Live()
	if !current.comparable || current == before || !live && current.rounds == before.rounds || current.rounds == p.Plan.Rounds {
		return // nothing new, or the report follows
	}
	r, err := p.Interim.Report()
	if err != nil {
		return // the report at the end has the error
	}
	if live {
		p.Bar.Show(tables(r, report.Options{Color: console.UseColor(os.Stderr), Width: console.Width(os.Stderr)}))
	} else if line := inOneLine(r); line != "" {
		p.Bar.Message(p.Plan.InRound(current.rounds) + ": " + line)
	}
}

func progressOf(plan *result.Plan, baseline string, sealed map[result.Key]bool) progress {
	var s progress
	type place struct {
		round int
		step  string
	}
	byBaseline, byOthers, open := map[place]bool{}, map[place]bool{}, map[int]bool{}
	for _, v := range bench.Visits(plan) {
		for _, step := range v.Steps {
			at := place{v.Round, step.ID}
			switch {
			case !sealed[result.Key{Contender: v.Entry.ID, Underlay: v.Entry.Underlay, Step: step.ID, Round: v.Round}]:
				open[v.Round] = true
				continue
			case v.Entry.ID == baseline:
				byBaseline[at] = true
			default:
				byOthers[at] = true
			}
			s.comparable = s.comparable || byBaseline[at] && byOthers[at]
			if v.Round == 1 {
				s.first++
			}
		}
	}
	for round := 1; round <= plan.Rounds; round++ {
		if !open[round] {
			s.rounds++
		}
	}
	return s
}

// tables returns the report without the parts that only a finished run has.
func tables(all *analysis.Report, opt report.Options) string {
	part := *all
	r := &part
	r.Unsupported, r.Efficiency = nil, nil
	r.Findings = slices.DeleteFunc(slices.Clone(r.Findings), func(f analysis.Finding) bool { return f.Code == "incomplete_run" })
	var text bytes.Buffer
	if err := report.Write(&text, string(report.Text), r, opt); err != nil {
		return ""
	}
	return text.String()
}

// inOneLine returns the ratios to the baseline in the most important metric of the
// first step that has ratios; "" if no step has.
func inOneLine(r *analysis.Report) string {
	for _, step := range r.Steps {
		for _, metric := range result.Columns() {
			var ratios []string
			for _, x := range r.Results {
				if x.Step == step.ID && x.Metric == metric && x.VsBaseline != nil {
					ratios = append(ratios, x.Contender+" "+unit.Ratio(x.VsBaseline.Ratio)+"×")
				}
			}
			if ratios != nil {
				return fmt.Sprintf("%s of %s, ratio to %s: %s", metric, step.ID, r.Baseline, strings.Join(ratios, ", "))
			}
		}
	}
	return ""
}

// interim assembles the report of a run under way, once for each number of sealed
// samples.
type interim struct {
	Store *result.Store
	at    int // sealed samples when made was assembled
	made  *analysis.Report
}

// Report returns the report of the samples that are sealed.
func (s *interim) Report() (*analysis.Report, error) {
	sealed := len(s.Store.SealedKeys())
	if s.made != nil && sealed == s.at {
		return s.made, nil
	}
	rec, err := result.Load(s.Store.Dir())
	if err != nil {
		return nil, err
	}
	s.at, s.made = sealed, report.Analyse(rec, analysis.Options{})
	return s.made, nil
}
