package layout

import (
	"cmp"
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/unit"
)

const (
	PublishedTitle = "Beside published figures"
	publishedLimit = " (link)" // marks a figure that the study's link limited
	PublishedNone  = "No published figure is of a contender, kind of step and metric of this run; docs/published.md has them all."
	PublishedAbout = "Each × is a ratio to its own baseline: ours to this run's, a study's to the one on its machines. " +
		"If a study's ratio is outside our interval, machines, versions or methods differ; docs/published.md has the sources and caveats. (link): the study's link was full, with the contender or with the baseline, so the ratio says little about the contender."
)

// PublishedRows returns the published figures, ordered by step.
func (v *View) PublishedRows() []analysis.PublishedFigure {
	rows := slices.Clone(v.Published)
	place := map[string]int{}
	for i, s := range v.Steps {
		place[s.ID] = i
	}
	slices.SortStableFunc(rows, func(a, b analysis.PublishedFigure) int { return cmp.Compare(place[a.Step], place[b.Step]) })
	return rows
}

func PublishedRatio(f analysis.PublishedFigure) string {
	if f.LineLimited {
		return unit.Ratio(f.Ratio) + "×" + publishedLimit
	}
	return unit.Ratio(f.Ratio) + "×"
}
