package report

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// scaleCharts returns charts of metrics by the number of other Services.
func (v *sheet) scaleCharts(g *layout.Group, l layout.Scale, first bool, colors map[string]int) []chart {
	var out []chart
	for _, one := range l.Tables(g, first) {
		metric, _ := result.LookupMetric(one.Metric)
		what := layout.MetricLabel(one.Metric)
		c := chart{
			Kind: "load", X: &axis{"Other Services", "count"}, Y: &axis{what, metric.Unit},
			Title:   what + " by number of Services, " + l.Name(),
			Caption: "Each point is a number of other Services; a flat line is a mechanism that does not mind them. " + logarithmic + " " + betterIs(metric.Better) + ".",
			Table:   plainTable{Head: append(append([]string{"contender"}, one.Head...), l.Last())},
		}
		if one.Metric == layout.SyncTime {
			c.Caption += " Of these times: " + layout.ProgrammedBy + "."
		}
		for _, s := range l.Steps {
			c.Places.steps = append(c.Places.steps, s.ID)
		}
		for _, r := range one.Rows {
			line := series{C: colors[r.ID], Points: [][2]short{}}
			row := []string{r.ID}
			for _, cell := range r.Cells {
				row = append(row, layout.ValueOr(cell))
			}
			for _, s := range l.Steps {
				if f := g.Figure(r.ID, layout.Column{Step: s.ID, Metric: one.Metric}); f != nil && f.Median > 0 {
					line.Points = append(line.Points, [2]short{short(s.Services), short(f.Median)})
				}
			}
			if len(line.Points) > 0 {
				c.Series = append(c.Series, line)
				c.Table.add(line.C, append(row, r.Grown)...)
			}
		}
		c.Label = fmt.Sprintf("Line chart of %s with %s; the table below it has the figures", c.Title, unit.Plural(len(c.Series), "contender"))
		out = append(out, c)
	}
	return out
}
