package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/printable"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// scale is a load through a Service beside fewer and more other Services, in
// the order of their number.
type scale struct {
	Steps  []result.Step
	Direct string // the step of the same load from pod to pod, "" without
}

// name is what the ids of the steps have in common.
func (l scale) name() string { return strings.TrimSuffix(l.Steps[0].ID, l.counted("-svc%d")) }

// about is what the steps' summaries have in common.
func (l scale) about() string {
	return strings.TrimSuffix(describe(result.Step{Summary: l.Steps[0].Summary, Workload: l.Steps[0].Workload}), l.counted(", beside %d other Services"))
}

func (l scale) counted(format string) string { return fmt.Sprintf(format, l.Steps[0].Services) }

// scales are the steps that the plan has for several numbers of Services.
func (v *view) scales() []scale {
	byLoad := map[string]int{}
	var all []scale
	for _, s := range v.Steps {
		if s.Services == 0 {
			continue
		}
		load, ok := loadOf(s)
		if !ok {
			continue
		}
		i, known := byLoad[load]
		if !known {
			i = len(all)
			byLoad[load], all = i, append(all, scale{Direct: v.direct(load)})
		}
		all[i].Steps = append(all[i].Steps, s)
	}
	all = slices.DeleteFunc(all, func(l scale) bool { return len(l.Steps) < 2 })
	for _, l := range all {
		slices.SortFunc(l.Steps, func(a, b result.Step) int { return a.Services - b.Services })
	}
	return all
}

// loadOf is the same text for steps of the same load.
func loadOf(s result.Step) (string, bool) {
	params, err := json.Marshal(s.Params) // keys in order
	return s.Workload + " " + string(params), err == nil
}

func (v *view) direct(load string) string {
	for _, s := range v.Steps {
		if same, ok := loadOf(s); ok && same == load && s.Path == "pod" {
			return s.ID
		}
	}
	return ""
}

// onScales says that the step is of a scale.
func onScales(all []scale, step string) bool {
	return slices.ContainsFunc(all, func(l scale) bool {
		return slices.ContainsFunc(l.Steps, func(s result.Step) bool { return s.ID == step })
	})
}

// apartFrom are the steps that are on no scale.
func (v *view) apartFrom(all []scale) []result.Step {
	return slices.DeleteFunc(slices.Clone(v.Steps), func(s result.Step) bool { return onScales(all, s.ID) })
}

// metrics are what a scale shows: latencies where the load has a rate, else
// the rate; the first scale says what it took to program the Services too.
func (l scale) metrics(g *group, first bool) []string {
	has := func(metric string) bool {
		return slices.ContainsFunc(l.Steps, func(s result.Step) bool { _, ok := g.has(s.ID, metric); return ok })
	}
	names := result.Telling(result.Traffic)
	times := []string{}
	for _, aspect := range []result.Aspect{result.Typical, result.Tail} {
		all := result.Telling(aspect)
		if i := slices.IndexFunc(all, has); i >= 0 {
			times = append(times, all[i])
		}
	}
	if len(times) > 0 {
		names = append(result.Own(result.Traffic), times...)
	}
	if first {
		names = append(names, syncTime)
	}
	return slices.DeleteFunc(names, func(m string) bool { return !has(m) })
}

// timed is the first scale that says what it took to program the Services, by
// its place; -1 is none.
func timed(g *group, all []scale) int {
	return slices.IndexFunc(all, func(l scale) bool { return slices.Contains(l.metrics(g, true), syncTime) })
}

// rungs is one metric of a scale: for every contender a figure at each number
// of Services.
type rungs struct {
	Metric string
	Head   []string
	Rows   []rung
}

type rung struct {
	contender
	Cells []*analysis.Result // as Head has them, nil without a figure
	Grown string             // the last figure by the first, "" without both
}

// tables are the scale's metrics.
func (l scale) tables(g *group, first bool) []rungs {
	var out []rungs
	for _, metric := range l.metrics(g, first) {
		t := rungs{Metric: metric}
		steps := l.Steps
		if _, ok := g.has(l.Direct, metric); ok {
			t.Head = append(t.Head, "no Service")
			steps = append([]result.Step{{ID: l.Direct}}, steps...)
		}
		for _, s := range l.Steps {
			t.Head = append(t.Head, unit.Format(float64(s.Services), "count"))
		}
		for _, c := range g.Contenders {
			row := rung{contender: c}
			some := false
			for _, s := range steps {
				f := g.figure(c.ID, column{Step: s.ID, Metric: metric})
				some = some || f != nil
				row.Cells = append(row.Cells, f)
			}
			low := g.figure(c.ID, column{Step: l.Steps[0].ID, Metric: metric})
			high := g.figure(c.ID, column{Step: l.Steps[len(l.Steps)-1].ID, Metric: metric})
			if low != nil && high != nil && low.Median > 0 {
				row.Grown = unit.Ratio(high.Median/low.Median) + "×"
			}
			if some {
				t.Rows = append(t.Rows, row)
			}
		}
		out = append(out, t)
	}
	return out
}

// syncTime is the metric of what it took to program the Services.
const syncTime = result.ServiceSyncTime

// programmedBy is what a reader must know before comparing contenders by
// syncTime.
const programmedBy = "in the lab its own writer is timed, not the product's agent, and only iptables-restore and nft are what the product runs; in a cluster, the API server and the product's agent are"

// last names the column of the growth.
func (l scale) last() string {
	return unit.Format(float64(l.Steps[len(l.Steps)-1].Services), "count") + " by " + unit.Format(float64(l.Steps[0].Services), "count")
}

// byServices prints a table for each metric of each scale.
func (t *textWriter) byServices(g *group, all []scale) {
	first := timed(g, all)
	for i, l := range all {
		for _, one := range l.tables(g, i == first) {
			tw := newGrid()
			head := table.Row{t.paint(bold, metricLabel(one.Metric))}
			for _, h := range append(one.Head, l.last()) {
				head = append(head, t.paint(bold, h))
			}
			tw.AppendHeader(head)
			for _, r := range one.Rows {
				row := table.Row{t.short(r.ID)}
				for _, cell := range r.Cells {
					row = append(row, valueOr(cell))
				}
				tw.AppendRow(append(row, r.Grown))
			}
			var configs []table.ColumnConfig
			for n := range len(head) - 1 {
				configs = append(configs, table.ColumnConfig{Number: n + 2, Align: text.AlignRight, AlignHeader: text.AlignRight})
			}
			tw.SetColumnConfigs(configs)
			t.rendered(tw)
			about := l.about() + "; columns: other Services"
			if one.Metric == syncTime {
				about = "time to program the step's Service and that many others on every node, from none; " + programmedBy
			}
			t.wrap("  ", printable.Line(l.name())+": "+printable.Line(about), dim)
			t.line("")
		}
	}
}

func valueOr(r *analysis.Result) string {
	if r == nil {
		return unit.Missing
	}
	return value(r)
}

// mdScales writes the same tables.
func mdScales(w io.StringWriter, g *group, all []scale) {
	first := timed(g, all)
	for i, l := range all {
		for _, one := range l.tables(g, i == first) {
			var b strings.Builder
			fmt.Fprintf(&b, "%s of %s (%s), by the number of other Services:\n\n| contender |", md(metricLabel(one.Metric)), md(l.name()), md(l.about()))
			for _, h := range append(one.Head, l.last()) {
				b.WriteString(" " + md(h) + " |")
			}
			b.WriteString("\n|---|" + strings.Repeat("---:|", len(one.Head)+1) + "\n")
			for _, r := range one.Rows {
				b.WriteString("| " + md(r.ID) + " |")
				for _, cell := range r.Cells {
					b.WriteString(" " + md(valueOr(cell)) + " |")
				}
				b.WriteString(" " + md(r.Grown) + " |\n")
			}
			if one.Metric == syncTime {
				b.WriteString("\nOf that table: " + md(programmedBy) + ".\n")
			}
			_, _ = w.WriteString(b.String() + "\n") // a bufio.Writer keeps its error until Flush
		}
	}
}

// scaleCharts show a metric against the number of other Services.
func (v *view) scaleCharts(g *group, l scale, first bool, colors map[string]int) []chart {
	var out []chart
	for _, one := range l.tables(g, first) {
		metric, _ := result.LookupMetric(one.Metric)
		what := metricLabel(one.Metric)
		c := chart{
			Kind: "load", X: &axis{"Other Services", "count"}, Y: &axis{what, metric.Unit},
			Title:   what + " by number of Services, " + l.name(),
			Caption: "Each point is a number of other Services; a flat line is a mechanism that does not mind them. " + logarithmic + " " + betterIs(metric.Better) + ".",
			Table:   plainTable{Head: append(append([]string{"contender"}, one.Head...), l.last())},
		}
		if one.Metric == syncTime {
			c.Caption += " Of these times: " + programmedBy + "."
		}
		for _, s := range l.Steps {
			c.Places.steps = append(c.Places.steps, s.ID)
		}
		for _, r := range one.Rows {
			line := series{C: colors[r.ID], Points: [][2]short{}}
			row := []string{r.ID}
			for _, cell := range r.Cells {
				row = append(row, valueOr(cell))
			}
			for _, s := range l.Steps {
				if f := g.figure(r.ID, column{Step: s.ID, Metric: one.Metric}); f != nil && f.Median > 0 {
					line.Points = append(line.Points, [2]short{short(s.Services), short(f.Median)})
				}
			}
			if len(line.Points) > 0 {
				c.Series = append(c.Series, line)
				c.Table.add(line.C, append(row, r.Grown)...)
			}
		}
		c.Label = fmt.Sprintf("Line chart of %s with %s; the table below it has the figures", c.Title, plural(len(c.Series), "contender"))
		out = append(out, c)
	}
	return out
}
