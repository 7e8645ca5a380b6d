package report

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// studyCharts returns the charts of the study's pictures. A picture over rates shows all
// groups together, and belongs to the first group.
func (v *sheet) studyCharts(g *layout.Group, colors map[string]int) []chart {
	if v.Study == nil {
		return nil
	}
	var out []chart
	for i := range v.Study.Pictures {
		switch p := &v.Study.Pictures[i]; p.Kind {
		case analysis.PictureLoad:
			if c := v.overRates(p, colors); c != nil && g.Site == v.Groups[0].Site {
				out = append(out, *c)
			}
		case analysis.PictureScatter:
			for _, s := range p.Select(v.Steps) {
				if c := v.costAgainstMemory(g, s, colors); c != nil {
					out = append(out, *c)
				}
			}
		}
	}
	return out
}

// overRates returns a chart of every contender's metric, as a ratio to the baseline on the
// same underlay, by the achieved rate; nil if no contender has two points.
func (v *sheet) overRates(p *analysis.Picture, colors map[string]int) *chart {
	steps := p.Select(v.Steps)
	out := &chart{
		Kind: "load", X: &axis{"Achieved rate", "1/s"}, Y: &axis{layout.MetricLabel(p.Metric) + " by " + v.Baseline + "'s", "1"},
		Title:   p.Title,
		Caption: "Each point is one rate, against " + v.Baseline + " on the same underlay. " + logarithmic + " Lower is better. A line that turns back is a contender that was asked for more than it can answer.",
		Table:   plainTable{Head: []string{"contender"}},
	}
	for _, s := range steps {
		out.Places.steps = append(out.Places.steps, s.ID)
		out.Table.Head = append(out.Table.Head, s.ID)
	}
	maximum := 0
	for i := range v.Groups {
		g := &v.Groups[i]
		for _, c := range g.Contenders {
			line, row := series{C: colors[c.ID], Points: [][2]short{}}, []string{c.ID}
			for _, s := range steps {
				rate, latency := g.Figure(c.ID, layout.Column{Step: s.ID, Metric: result.Rate}), g.Figure(c.ID, layout.Column{Step: s.ID, Metric: p.Metric})
				if c.Baseline || rate == nil || latency == nil || latency.VsBaseline == nil {
					row = append(row, unit.Missing)
					continue
				}
				row = append(row, layout.Comparison(latency.VsBaseline)+" at "+layout.Value(rate))
				line.Points = append(line.Points, [2]short{short(rate.Median), short(latency.VsBaseline.Ratio)})
			}
			if maximum = max(maximum, len(line.Points)); len(line.Points) > 0 {
				out.Series = append(out.Series, line)
				out.Table.add(line.C, row...)
			}
		}
	}
	if maximum < 2 {
		return nil
	}
	out.Label = fmt.Sprintf("Line chart of %s with %s; the table below it has the figures", out.Title, unit.Plural(len(out.Series), "contender"))
	return out
}

// costAgainstMemory is a step's CPU cost against its memory over the baseline; nil with
// fewer than two contenders, or if the nodes shared one machine's memory.
func (v *sheet) costAgainstMemory(g *layout.Group, s result.Step, colors map[string]int) *chart {
	cost, ok := g.Has(s.ID, v.cost(g, s.ID))
	if !ok || analysis.SharesMemory(v.Run.Arena) {
		return nil
	}
	memory, _ := result.LookupMetric(result.MemoryOverhead)
	label := layout.MetricLabel(memory.Name)
	out := &chart{
		Kind: "scatter", X: &axis{cost.Head(), cost.Unit}, Y: &axis{label, memory.Unit}, Places: ofSteps(s.ID),
		Title:   "CPU cost against memory, " + s.ID,
		Caption: "Medians, with their intervals where the rounds are enough for one. Best is the lower left.",
		Table:   plainTable{Head: []string{"contender", cost.Head(), label}},
	}
	for _, c := range g.Contenders {
		x, e := g.Figure(c.ID, cost), v.efficiency(g, c.ID, s.ID)
		if x == nil || e == nil || e.MemoryOverhead == nil || !layout.IsFinite(e.MemoryOverhead.Median) {
			continue
		}
		p := point{C: colors[c.ID], X: newFigure(x), Y: toFigure(*e.MemoryOverhead, memory.Unit)}
		out.Points = append(out.Points, p)
		out.Table.add(p.C, c.ID, p.X.Text, p.Y.Text)
	}
	if len(out.Points) < 2 {
		return nil
	}
	if bare := v.BareCluster(); bare != "" {
		out.Caption += " " + bare
	}
	out.Label = fmt.Sprintf("Scatter chart of %s with %s; the table below it has the figures", out.Title, unit.Plural(len(out.Points), "contender"))
	return out
}
