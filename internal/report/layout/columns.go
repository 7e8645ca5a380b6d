package layout

import (
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
)

// ColumnsPerStep is the largest number of columns of a step in the tables below the first,
// so that they fit on a terminal.
const ColumnsPerStep = 4

// Headline returns the columns of the first table: goodput and CPU cost of the first step
// that has goodput, and the median and the tail of the first step that has latency.
func Headline(g *Group, steps []result.Step) []Column {
	var goodput, latency []Column
	for _, s := range steps {
		if len(goodput) == 0 {
			if _, ok := g.Has(s.ID, result.Goodput); ok {
				goodput = g.columns(s.ID, result.MainMetrics(result.Traffic, result.Cost)...)
			}
		}
		if len(latency) == 0 {
			for _, aspect := range []result.Aspect{result.Typical, result.Tail} {
				if columns := g.columns(s.ID, result.OfAspect(aspect)...); len(columns) > 0 && (aspect != result.Tail || g.known(columns[0])) {
					latency = append(latency, columns[0])
				}
			}
		}
	}
	if len(goodput) == 0 && len(latency) > 0 {
		return append(latency, g.columns(latency[0].Step, result.CPUPerRequest)...)
	}
	if len(goodput) == 0 {
		return nil
	}
	return slices.Concat(goodput[:1], latency, goodput[1:])
}

// maxTail is the largest half-width of a ratio's interval, and the largest detectable
// difference, for a tail in the headline. Beyond, a tail describes the worst moments of the
// rounds, not the contenders.
const maxTail = 0.30

// Steady returns the highest percentile (0–100) of the clock at the step up to which the
// figures of this run can be compared; 100 if all of them can.
func (g *Group) Steady(step, clock string) float64 {
	last := 0.0
	for _, m := range result.Metrics() { // in the order of their percentiles
		if m.Clock != clock || m.Percent == 0 {
			continue
		}
		if c, ok := g.Has(step, m.Name); ok {
			if !g.known(c) {
				return last
			}
			last = m.Percent
		}
	}
	return 100
}

// known says whether at least half of the contenders with an interval or a detectable
// difference in the column have a half-width and a detectable difference of at most maxTail. It
// is false without any, unless no other column has one, too: then none is known better.
func (g *Group) known(c Column) bool {
	all, narrow := 0, 0
	for _, one := range g.Contenders {
		f := g.Figure(one.ID, c)
		if f == nil || f.VsBaseline == nil || f.VsBaseline.CI == nil && f.MDD == nil {
			continue
		}
		all++
		if (f.VsBaseline.CI == nil || f.VsBaseline.HalfWidth() <= maxTail) && (f.MDD == nil || *f.MDD <= maxTail) {
			narrow++
		}
	}
	if all == 0 {
		for _, f := range g.figures {
			if f.VsBaseline != nil && f.VsBaseline.CI != nil {
				return false
			}
		}
	}
	return 2*narrow >= all
}

// Further returns the columns of the tables below the headline: p99.9 of the latency in the
// headline, and the main metrics of every step that are not in the headline. Other metrics
// are only in HTML, CSV and JSON.
func Further(g *Group, steps []result.Step, head []Column) [][]Column {
	var out [][]Column
	for _, c := range head {
		if tail := g.columns(c.Step, result.LatencyP99_9); c.Metric == result.LatencyP99 && len(tail) > 0 {
			out = append(out, tail)
		}
	}
	inHead := func(step string) bool {
		return slices.ContainsFunc(head, func(c Column) bool { return c.Step == step })
	}
	for _, s := range steps {
		columns := slices.DeleteFunc(mainColumns(g, s.ID), func(c Column) bool {
			shown := slices.Contains(head, c) || slices.Contains(slices.Concat(out...), c)
			return shown || c.Metric == result.Rate && inHead(s.ID) // the rate of such a load was set by the step
		})
		if len(columns) > 0 {
			out = append(out, columns)
		}
	}
	return out
}

func mainColumns(g *Group, step string) []Column {
	metrics := result.Columns() // the mean latency only if there are no percentiles
	if _, ok := g.Has(step, result.LatencyP50); ok {
		metrics = slices.DeleteFunc(metrics, func(m string) bool { return m == result.LatencyMean })
	}
	columns := g.columns(step, metrics...)
	if len(columns) == 0 {
		for _, m := range result.Metrics() {
			columns = append(columns, g.columns(step, m.Name)...)
		}
	}
	return columns[:min(len(columns), ColumnsPerStep)]
}

// columns returns the columns of those metrics that the step has.
func (g *Group) columns(step string, metrics ...string) []Column {
	var out []Column
	for _, m := range metrics {
		if c, ok := g.Has(step, m); ok {
			out = append(out, c)
		}
	}
	return out
}

// Pack distributes sets of columns to tables that are at most width wide. Short sets share a
// table, and a set is divided only if it is wider than a table.
func Pack(sets [][]Column, width int, widthOf func(Column) int) [][]Column {
	var tables [][]Column
	used := 0
	add := func(set []Column, size int) {
		if last := len(tables) - 1; last >= 0 && used+size <= width {
			tables[last] = append(tables[last], set...)
			used += size
			return
		}
		tables, used = append(tables, slices.Clone(set)), size
	}
	for _, set := range sets {
		size := 0
		for _, c := range set {
			size += widthOf(c)
		}
		if size <= width {
			add(set, size)
			continue
		}
		for _, c := range set {
			add([]Column{c}, widthOf(c))
		}
	}
	return tables
}

// StepsOf returns the steps of the columns, in the order of the report.
func StepsOf(steps []result.Step, columns []Column) []result.Step {
	return slices.DeleteFunc(slices.Clone(steps), func(s result.Step) bool {
		return !slices.ContainsFunc(columns, func(c Column) bool { return c.Step == s.ID })
	})
}

// Describe says what a step does: its summary, or its workload, and its path.
func Describe(s result.Step) string {
	words := s.Summary
	if words == "" {
		words = strings.ReplaceAll(s.Workload, "_", " ")
	}
	if s.Path != "" && s.Path != "pod" && !strings.Contains(strings.ToLower(words), strings.ToLower(s.Path)) {
		words += ", path " + s.Path
	}
	return strings.TrimPrefix(words, ", ")
}
