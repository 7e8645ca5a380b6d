package report

import (
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// efficiencyCharts returns a chart of goodput and CPU cost for every step that has both
// figures of at least two contenders.
func (v *sheet) efficiencyCharts(g *layout.Group, colors map[string]int) []chart {
	var out []chart
	for _, s := range v.Steps {
		cost := v.cost(g, s.ID)
		c := chart{
			Kind: "scatter", X: &axis{layout.MetricLabel(cost), "CPU-s/Gbit"}, Y: &axis{"Goodput", "bit/s"}, Places: ofSteps(s.ID),
			Title:   "Efficiency, " + s.ID,
			Caption: "Medians; best is the upper left.",
			Table:   plainTable{Head: layout.CostHead},
		}
		for _, contender := range g.Contenders {
			e := v.efficiency(g, contender.ID, s.ID)
			if e == nil {
				continue
			}
			row := layout.CostCells(e)
			if analysis.SharesMemory(v.Run.Arena) {
				row[4] = unit.Missing
			}
			c.Table.add(colors[contender.ID], row...)
			if r := g.Figure(contender.ID, layout.Column{Step: s.ID, Metric: cost}); r != nil && layout.IsFinite(e.Goodput.Median) {
				c.Points = append(c.Points, point{
					C: colors[contender.ID], X: newFigure(r), Y: toFigure(e.Goodput, "bit/s"), Frontier: e.Frontier,
				})
			}
		}
		if len(c.Points) < 2 {
			continue
		}
		drawn := func(is func(point) bool) int {
			return len(slices.DeleteFunc(slices.Clone(c.Points), func(p point) bool { return !is(p) }))
		}
		if drawn(func(p point) bool { return p.X.Low != nil || p.Y.Low != nil }) > 0 {
			c.Caption += " Crosses: their intervals."
		}
		if drawn(func(p point) bool { return p.Frontier }) > 1 { // one point makes no line
			c.Caption += " Dashed line: the frontier of the medians, where no other contender has more goodput for less CPU; neighbours may be alike."
		}
		c.Caption += " Shape: circle in plain text, triangle with WireGuard, diamond with IPsec."
		c.Label = fmt.Sprintf("Scatter chart of goodput against its CPU cost at %s with %s; the table below it has the figures", s.ID, unit.Plural(len(c.Points), "contender"))
		out = append(out, c)
	}
	return out
}

// cost returns the metric of the CPU cost at the step. Runs of others may have only a part
// of the CPU time.
func (v *sheet) cost(g *layout.Group, step string) string {
	for _, metric := range result.DividedBy(result.Goodput) {
		if _, ok := g.Has(step, metric); ok {
			return metric
		}
	}
	return result.CPUPerGbit
}

func (v *sheet) efficiency(g *layout.Group, contender, step string) *analysis.Efficiency {
	for i := range v.Efficiency {
		if e := &v.Efficiency[i]; e.Contender == contender && e.Step == step && (layout.Site{Kernel: e.Kernel, Underlay: e.Underlay}) == g.Site {
			return e
		}
	}
	return nil
}

// toFigure returns an estimate as a figure of a chart.
func toFigure(e analysis.Estimate, unitName string) figure {
	f := figure{Value: e.Median, Text: layout.Estimate(&e, unitName)}
	if e.CI != nil && layout.FiniteInterval(e.CI) {
		f.Low, f.High = &e.CI[0], &e.CI[1]
	}
	return f
}

// scatter returns a chart of CPU cost and traffic for steps without goodput; nil with fewer
// than two contenders.
func (v *sheet) scatter(g *layout.Group, colors map[string]int) *chart {
	x, ok := v.first(g, result.ColumnsWhere(func(m result.Metric) bool { return m.Per != "" })...)
	if !ok {
		return nil
	}
	y, ok := v.first(g, result.OfAspect(result.Traffic)...)
	if !ok {
		return nil
	}
	out := &chart{
		Kind: "scatter", X: &axis{x.Head(), x.Unit}, Y: &axis{y.Head(), y.Unit}, Places: ofSteps(x.Step, y.Step),
		Title:   x.Head() + " against " + lowerFirst(y.Head()),
		Caption: fmt.Sprintf("Medians, with their intervals where the rounds are enough for one; %s at %s, %s at %s. %s", x.Head(), x.Step, lowerFirst(y.Head()), y.Step, upperLeft),
		Table:   plainTable{Head: []string{"contender", x.Head(), y.Head()}},
	}
	for _, c := range g.Contenders {
		fx, fy := g.Figure(c.ID, x), g.Figure(c.ID, y)
		if fx == nil || fy == nil {
			continue
		}
		p := point{C: colors[c.ID], X: newFigure(fx), Y: newFigure(fy)}
		out.Points = append(out.Points, p)
		out.Table.add(p.C, c.ID, p.X.Text, p.Y.Text)
	}
	if len(out.Points) < 2 {
		return nil
	}
	out.Label = fmt.Sprintf("Scatter chart of %s with %s; the table below it has the figures", out.Title, unit.Plural(len(out.Points), "contender"))
	return out
}

const upperLeft = "Best is the upper left."

// first returns the column of the first step that has one of the metrics.
func (v *sheet) first(g *layout.Group, metrics ...string) (layout.Column, bool) {
	for _, m := range metrics {
		for _, s := range v.Steps {
			if c, ok := g.Has(s.ID, m); ok {
				return c, true
			}
		}
	}
	return layout.Column{}, false
}

func lowerFirst(s string) string {
	if len(s) > 1 && s[1] >= 'a' && s[1] <= 'z' && s[0] >= 'A' && s[0] <= 'Z' {
		return string(s[0]+'a'-'A') + s[1:]
	}
	return s
}
