package layout

import (
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
)

// ColumnsPerStep keeps a further step to one row of a terminal table.
const ColumnsPerStep = 4

// Headline chooses the columns of the first table from what there is: goodput
// and its CPU cost from the first step that has goodput, the median and the
// tail from the first that has latency.
func Headline(g *Group, steps []result.Step) []Column {
	var goodput, latency []Column
	for _, s := range steps {
		if len(goodput) == 0 {
			if _, ok := g.Has(s.ID, result.Goodput); ok {
				goodput = g.columns(s.ID, result.Own(result.Traffic, result.Cost)...)
			}
		}
		if len(latency) == 0 {
			for _, aspect := range []result.Aspect{result.Typical, result.Tail} {
				if told := g.columns(s.ID, result.Telling(aspect)...); len(told) > 0 && (aspect != result.Tail || g.known(told[0])) {
					latency = append(latency, told[0])
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

// mostTail is half the width of a ratio's interval, and the smallest difference that would
// show, above which a tail is no headline: it would tell of the rounds' worst moments, not
// of the contenders.
const mostTail = 0.30

// known says that the ratios in a column are known to mostTail, for the typical
// contender, or that nothing is said of how well they are known: with too few rounds for
// intervals, or without a baseline, all columns are alike.
func (g *Group) known(c Column) bool {
	all, narrow := 0, 0
	for _, one := range g.Contenders {
		if f := g.Figure(one.ID, c); f != nil && f.VsBaseline != nil && f.VsBaseline.CI != nil {
			all++
			if f.VsBaseline.HalfWidth() <= mostTail && (f.MDD == nil || *f.MDD <= mostTail) {
				narrow++
			}
		}
	}
	return 2*narrow >= all
}

// Further are the columns of the tables below the headline: the far tail of
// the latency that the headline shows, and of every step the main metrics that
// the headline does not show. The rest is for the HTML, CSV and JSON forms.
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
			again := slices.Contains(head, c) || slices.Contains(slices.Concat(out...), c)
			return again || c.Metric == result.Rate && inHead(s.ID) // a load that is paced, beside its latency
		})
		if len(columns) > 0 {
			out = append(out, columns)
		}
	}
	return out
}

func mainColumns(g *Group, step string) []Column {
	metrics := result.Columns() // the mean latency stands in only where there are no percentiles
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

// columns are those of the metrics that the step has.
func (g *Group) columns(step string, metrics ...string) []Column {
	var out []Column
	for _, m := range metrics {
		if c, ok := g.Has(step, m); ok {
			out = append(out, c)
		}
	}
	return out
}

// Pack lays column sets out in tables no wider than width: sets stay together
// where they fit, short ones share a table.
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

// StepsOf are the steps that the columns name, in the order of the report.
func StepsOf(steps []result.Step, columns []Column) []result.Step {
	return slices.DeleteFunc(slices.Clone(steps), func(s result.Step) bool {
		return !slices.ContainsFunc(columns, func(c Column) bool { return c.Step == s.ID })
	})
}

// Describe says what a step does, from its own summary or its parts.
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
