package run

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/bench"
	"github.com/cnibench/cnibench/internal/console"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// preview shows the comparison while the run goes on: on a terminal the report's
// tables, drawn anew as steps of the first round and then as rounds are finished;
// elsewhere one line for each finished round.
type preview struct {
	bar      *console.Progress
	soFar    *soFar
	plan     *result.Plan
	baseline string
	done     int // steps, when it was last looked
	shown    standing
}

// standing is how far a run has come.
type standing struct {
	comparable bool // the baseline and another contender have taken the same step in the same round
	rounds     int  // that are finished
	first      int  // samples of steps of the first round
}

// before shows what has changed and then the progress. The runner reports its
// progress between steps, when reading the samples disturbs no measurement.
func (p *preview) before(progress func(bench.Progress)) func(bench.Progress) {
	return func(at bench.Progress) {
		if at.Done != p.done {
			p.done = at.Done
			p.update()
		}
		progress(at)
	}
}

func (p *preview) update() {
	now, before := standingOf(p.plan, p.baseline, p.soFar.store.Sealed()), p.shown
	p.shown = now
	live := p.bar.Live()
	if !now.comparable || now == before || !live && now.rounds == before.rounds || now.rounds == p.plan.Rounds {
		return // nothing new, or the report follows
	}
	r, err := p.soFar.report()
	if err != nil {
		return // the report at the end has the error
	}
	if live {
		p.bar.Show(tables(r, report.Options{Color: console.UseColor(os.Stderr), Width: console.Width(os.Stderr)}))
	} else if line := inOneLine(r); line != "" {
		p.bar.Message(p.plan.InRound(now.rounds) + ": " + line)
	}
}

func standingOf(plan *result.Plan, baseline string, sealed map[result.Key]bool) standing {
	var s standing
	type place struct {
		round int
		step  string
	}
	mine, others, open := map[place]bool{}, map[place]bool{}, map[int]bool{}
	for _, v := range bench.Visits(plan) {
		for _, step := range v.Steps {
			at := place{v.Round, step.ID}
			switch {
			case !sealed[result.Key{Contender: v.Entry.ID, Underlay: v.Entry.Underlay, Step: step.ID, Round: v.Round}]:
				open[v.Round] = true
				continue
			case v.Entry.ID == baseline:
				mine[at] = true
			default:
				others[at] = true
			}
			s.comparable = s.comparable || mine[at] && others[at]
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

// tables is the report without what every run lacks before its end.
func tables(all *analysis.Report, opt report.Options) string {
	part := *all
	r := &part
	r.Unsupported, r.Efficiency, r.Fleet = nil, nil, nil
	r.Findings = slices.DeleteFunc(slices.Clone(r.Findings), func(f analysis.Finding) bool { return f.Code == "incomplete_run" })
	var text bytes.Buffer
	if err := report.Write(&text, string(report.Text), r, opt); err != nil {
		return ""
	}
	return text.String()
}

// inOneLine gives the ratios to the baseline of the first step's most telling
// metric; "" where there is none.
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
