package report

import (
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// resourceCharts returns charts of the nodes' CPU time by mode and, where nodes
// have memory of their own, their memory at a step.
func (v *sheet) resourceCharts(g *layout.Group, s result.Step, colors map[string]int) []chart {
	var out []chart
	if c := cpuChart(g, s, colors); c != nil {
		out = append(out, *c)
	}
	for _, metric := range result.ColumnsWhere(func(m result.Metric) bool { return m.Unit == "bytes" }) {
		if analysis.SharesMemory(v.Run.Arena) {
			continue // the whole machine's memory, whichever contender runs
		}
		if c, ok := g.Has(s.ID, metric); ok {
			out = append(out, barChart(g, c, colors))
		}
	}
	return out
}

// cpuChart returns a chart of the CPU modes of the client's and the server's node; nil if
// they were not measured.
func cpuChart(g *layout.Group, s result.Step, colors map[string]int) *chart {
	out := &chart{
		Kind: "stacks", X: &axis{"CPU used", "CPU-s/s"}, Places: ofSteps(s.ID),
		Title:   "CPU by mode, " + s.ID,
		Caption: "Medians of each mode; the upper bar is the client's node, the lower one the server's. Steal and iowait are no work. Lower is better.",
		Table:   plainTable{Head: []string{"contender", "node"}},
	}
	sides := []string{"client", "server"}
	for _, mode := range result.CPUModes {
		if slices.ContainsFunc(sides, func(side string) bool { return anyAboveZero(g, s.ID, result.CPUMode(side, mode)) }) {
			out.Parts = append(out.Parts, mode)
		}
	}
	out.Table.Head = append(out.Table.Head, out.Parts...)
	for _, contender := range g.Contenders {
		for _, side := range sides {
			st, measured := stack{C: colors[contender.ID], Side: side}, false
			row := []string{contender.ID, side}
			for _, mode := range out.Parts {
				r := g.Figure(contender.ID, layout.Column{Step: s.ID, Metric: result.CPUMode(side, mode)})
				if r == nil {
					st.Values, row = append(st.Values, nil), append(row, unit.Missing)
					continue
				}
				median := short(r.Median)
				st.Values, row, measured = append(st.Values, &median), append(row, layout.Value(r)), true
			}
			if measured {
				out.Stacks = append(out.Stacks, st)
				out.Table.add(st.C, row...)
			}
		}
	}
	if len(out.Stacks) == 0 {
		return nil
	}
	out.Label = fmt.Sprintf("Stacked bar chart of %s, client and server of %s; the table below it has the figures", out.Title, unit.Plural(len(out.Stacks)/2, "contender"))
	return out
}

// anyAboveZero says whether any contender has a figure of the metric above zero.
func anyAboveZero(g *layout.Group, step, metric string) bool {
	return slices.ContainsFunc(g.Contenders, func(c layout.Contender) bool {
		r := g.Figure(c.ID, layout.Column{Step: step, Metric: metric})
		return r != nil && r.Median > 0
	})
}
