package layout

import (
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// AnotherRun is a table of the intervals in which ratios would lie in another run.
type AnotherRun struct {
	Title string
	Head  []string   // contender, then the figures
	Rows  [][]string // by contender
	About string
}

// AnotherRun returns the intervals of the headline's figures in another run; nil if none is
// known. A figure that this run knows too little of has none.
func (v *View) AnotherRun(g *Group) *AnotherRun {
	var columns []Column
	var any *analysis.AnotherRun
	for _, c := range Headline(g, v.Steps) {
		if row, _ := result.LookupMetric(c.Metric); row.Aspect == result.Tail {
			continue
		}
		for _, one := range g.Contenders {
			if f := g.Figure(one.ID, c); f != nil && f.AnotherRun != nil {
				if !slices.Contains(columns, c) {
					columns = append(columns, c)
				}
				if any == nil || any.Runs < f.AnotherRun.Runs {
					any = f.AnotherRun
				}
			}
		}
	}
	if any == nil {
		return nil
	}
	t := &AnotherRun{Head: []string{""}}
	for _, c := range columns {
		t.Head = append(t.Head, c.Head())
	}
	for _, one := range g.SortBy(columns).Contenders {
		if one.Baseline {
			continue
		}
		row := []string{one.ID}
		for _, c := range columns {
			cell := "not known here"
			if f := g.Figure(one.ID, c); f != nil && f.AnotherRun != nil {
				cell = ""
				for i, ratio := range f.AnotherRun.Ratios {
					cell += []string{"", ", "}[min(i, 1)] + unit.Ratio(ratio)
				}
				if cell != "" {
					cell += ": "
				}
				cell += unit.Ratio(f.AnotherRun.CI[0]) + "–" + unit.Ratio(f.AnotherRun.CI[1]) + "×"
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	by := fmt.Sprintf("this run and %s of the project on %s with two CPUs", unit.Plural(any.Runs-1, "run"), unit.Plural(any.Machines-1, "machine"))
	t.Title = "Another machine or hour"
	where := "another run"
	switch {
	case any.Source == analysis.ProjectRuns && any.Ratios != nil:
		by = fmt.Sprintf("these %d runs and %d of the project on machines with two CPUs", len(any.Ratios), any.Runs-len(any.Ratios))
	case any.Source == analysis.OwnRuns && any.Machines == 1:
		t.Title, where = "Another hour of this machine", "another run on this machine"
		by = fmt.Sprintf("these %d runs, which say nothing of another machine", any.Runs)
	case any.Source == analysis.OwnRuns:
		by = fmt.Sprintf("these %d runs on %d machines", any.Runs, any.Machines)
	}
	if any.Ratios != nil {
		by += " (their ratios come first)"
	}
	t.About = fmt.Sprintf("Where the ratio to %s of %s lies, with %s confidence, by %s. All ratios of a run move together: the order holds better than they do.",
		v.Baseline, where, unit.FormatPercent(any.Confidence), by)
	return t
}
