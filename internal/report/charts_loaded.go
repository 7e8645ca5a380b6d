package report

import (
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// loadedCharts returns charts of round trips with and without bulk connections beside them,
// by the clock of the tables.
func (v *sheet) loadedCharts(g *layout.Group, colors map[string]int) []chart {
	var out []chart
	for _, metric := range result.OfAspect(result.Typical) {
		for _, f := range v.families(g, result.FlowsParam, metric) {
			if main, _ := latencyBars(g, f[0].ID); main.Metric == metric {
				out = append(out, v.loadedChart(g, f, main, colors))
			}
		}
	}
	return out
}

func (v *sheet) loadedChart(g *layout.Group, f family, by layout.Column, colors map[string]int) chart {
	slices.SortStableFunc(f, func(a, b result.Step) int { return flows(a) - flows(b) })
	what := layout.MetricLabel(by.Metric)
	c := chart{
		Kind: "pairs", X: &axis{what, by.Unit}, Places: ofSteps(f.ids()...),
		Title:   what + " idle and under load, " + f.name(),
		Caption: "Hollow: nothing beside the requests. Full: bulk TCP connections send beside them, as fast as they can. The way between is what they change. A loaded median can be the lower one, because an idle CPU has to wake up first; the wait behind a large transfer shows in the tail. Lines: their intervals. The axis is logarithmic and does not begin at zero. Lower is better.",
		Table:   plainTable{Head: []string{"contender"}},
	}
	for _, s := range f {
		c.Parts = append(c.Parts, flowsText(flows(s)))
	}
	c.Table.Head = append(c.Table.Head, c.Parts...)
	for _, contender := range g.Contenders {
		p, row, some := pair{C: colors[contender.ID]}, []string{contender.ID}, false
		for _, s := range f {
			r := g.Figure(contender.ID, layout.Column{Step: s.ID, Metric: by.Metric, Unit: by.Unit, Better: by.Better})
			if r == nil || r.Median <= 0 {
				p.Figures, row = append(p.Figures, nil), append(row, unit.Missing)
				continue
			}
			one := newFigure(r)
			p.Figures, row, some = append(p.Figures, &one), append(row, one.Text), true
		}
		if some {
			c.Pairs = append(c.Pairs, p)
			c.Table.add(p.C, row...)
		}
	}
	c.Label = fmt.Sprintf("Chart of %s with %s; the table below it has the figures", c.Title, unit.Plural(len(c.Pairs), "contender"))
	return c
}

// flows returns how many bulk connections send beside the step's requests.
func flows(s result.Step) int {
	switch n := s.Params[result.FlowsParam].(type) {
	case int:
		return n
	case float64: // read from JSON
		return int(n)
	}
	return 0
}

func flowsText(n int) string {
	if n == 0 {
		return "idle"
	}
	return unit.Plural(n, "bulk flow")
}
