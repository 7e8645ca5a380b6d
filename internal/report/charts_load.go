package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/unit"
)

// family is a list of steps that differ only in one parameter, in the order of the plan.
type family []result.Step

// name returns the common begin of the steps' ids.
func (f family) name() string {
	common := f[0].ID
	for _, s := range f {
		for common != "" && (len(s.ID) < len(common) || s.ID[:len(common)] != common) {
			common = common[:len(common)-1]
		}
	}
	for common != "" && (common[len(common)-1] == '-' || common[len(common)-1] == '_') {
		common = common[:len(common)-1]
	}
	if common == "" {
		return f[0].Workload
	}
	return common
}

func (f family) ids() []string {
	var ids []string
	for _, s := range f {
		ids = append(ids, s.ID)
	}
	return ids
}

// families returns the steps with a figure of the metric that differ only in the parameter.
func (v *sheet) families(g *layout.Group, param, metric string) []family {
	byKind := map[string]int{}
	var all []family
	for _, s := range v.Steps {
		params := maps.Clone(s.Params)
		if _, has := params[param]; !has {
			continue
		}
		if _, ok := g.Has(s.ID, metric); !ok {
			continue
		}
		delete(params, param)
		rest, err := json.Marshal(params) // keys in order
		if err != nil {
			continue
		}
		kind := fmt.Sprintf("%s %s %d %s", s.Workload, s.Path, s.Services, rest)
		if i, has := byKind[kind]; has {
			all[i] = append(all[i], s)
			continue
		}
		byKind[kind] = len(all)
		all = append(all, family{s})
	}
	return slices.DeleteFunc(all, func(f family) bool { return len(f) < 2 })
}

// loadCharts returns a chart of latency by achieved rate for each percentile that at least
// two rates have.
func (v *sheet) loadCharts(g *layout.Group, f family, colors map[string]int) []chart {
	var out []chart
	for _, metric := range result.ColumnsWhere(func(m result.Metric) bool { return m.Percent > 0 }) {
		what := layout.MetricLabel(metric)
		c := chart{
			Kind: "load", X: &axis{"Achieved rate", "1/s"}, Y: &axis{what, "s"}, Places: ofSteps(f.ids()...),
			Title:   what + " against load, " + f.name(),
			Caption: "Each point is one rate; a line that rises is a contender near its limit. " + logarithmic + " Lower is better.",
			Table:   plainTable{Head: append([]string{"contender"}, f.ids()...)},
		}
		maximum := 0
		for _, contender := range g.Contenders {
			line := series{C: colors[contender.ID], Points: [][2]short{}}
			row := []string{contender.ID}
			for _, s := range f {
				rate := g.Figure(contender.ID, layout.Column{Step: s.ID, Metric: result.Rate})
				latency := g.Figure(contender.ID, layout.Column{Step: s.ID, Metric: metric})
				if rate == nil || latency == nil {
					row = append(row, unit.Missing)
					continue
				}
				row = append(row, layout.Value(latency)+" at "+layout.Value(rate))
				if latency.Median > 0 {
					line.Points = append(line.Points, [2]short{short(rate.Median), short(latency.Median)})
				}
			}
			maximum = max(maximum, len(line.Points))
			if len(line.Points) > 0 {
				c.Series = append(c.Series, line)
				c.Table.add(line.C, row...)
			}
		}
		if maximum < 2 {
			continue
		}
		c.Label = fmt.Sprintf("Line chart of %s with %s; the table below it has the figures", c.Title, unit.Plural(len(c.Series), "contender"))
		out = append(out, c)
	}
	return out
}

// rateCharts returns a chart for each contender, with its latency curves at all rates of
// the family.
func (v *sheet) rateCharts(g *layout.Group, f family, colors map[string]int) []chart {
	var out []chart
	for _, contender := range g.Contenders {
		c := chart{
			Kind: "curves", Y: &axis{"Latency", "s"}, Places: ofSteps(f.ids()...),
			Title:   contender.ID + " by rate, " + f.name(),
			Caption: "All valid rounds merged. " + logarithmic + " Lower is better.",
			Table:   plainTable{Head: []string{"step", "samples", "p50", "p99", "p99.9"}},
		}
		c.Places.Contender = colors[contender.ID] + 1
		for i, s := range f {
			for _, curve := range v.curves(g, s.ID) {
				if curve.Contender != contender.ID {
					continue
				}
				c.Y.Label = layout.MetricLabel(curve.Clock)
				c.Series = append(c.Series, series{C: i + 1, Name: text.SafeLine(s.ID), Points: curvePoints(curve)})
				row := []string{s.ID, unit.Format(float64(curve.Count), "count")}
				for _, want := range []float64{50, 99, 99.9} {
					cell := unit.Missing
					if p := pointAt(curve, want); p != nil {
						cell = unit.Format(p.Seconds, "s")
					}
					row = append(row, cell)
				}
				c.Table.add(colors[contender.ID], row...)
			}
		}
		if len(c.Series) < 2 {
			continue
		}
		c.Label = fmt.Sprintf("Line chart of %s by percentile, %s; the table below it has the figures", c.Y.Label, c.Title)
		out = append(out, c)
	}
	return out
}
