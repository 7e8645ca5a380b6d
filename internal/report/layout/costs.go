package layout

import (
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/unit"
)

// This file puts the costs of traffic into words, for text and Markdown.

// costs is the efficiency of one step in a group.
type costs struct {
	Step     string
	baseline string
	Rows     []analysis.Efficiency // in the order of the report
}

// CostsOf returns the steps of a group that have CPU by goodput, in the order of
// the report.
func (v *View) CostsOf(g *Group) []costs {
	var list []costs
	for _, e := range v.Efficiency {
		if (Site{Kernel: e.Kernel, Underlay: e.Underlay}) != g.Site || e.CPUPerGbit == nil && e.UserSystem == nil {
			continue
		}
		i := slices.IndexFunc(list, func(c costs) bool { return c.Step == e.Step })
		if i < 0 {
			i = len(list)
			list = append(list, costs{Step: e.Step, baseline: v.Baseline})
		}
		list[i].Rows = append(list[i].Rows, e)
	}
	return slices.DeleteFunc(list, func(c costs) bool { return len(c.Rows) < 2 })
}

// frontier returns the contenders on the frontier, the most goodput first.
func (c costs) frontier() []string {
	var on []analysis.Efficiency
	for _, e := range c.Rows {
		if e.Frontier {
			on = append(on, e)
		}
	}
	slices.SortStableFunc(on, func(a, b analysis.Efficiency) int {
		switch {
		case a.Goodput.Median > b.Goodput.Median:
			return -1
		case a.Goodput.Median < b.Goodput.Median:
			return 1
		}
		return 0
	})
	names := make([]string, len(on))
	for i, e := range on {
		names[i] = e.Contender
	}
	return names
}

// lowerBound says whether the step has only CPU time of user and system.
func (c costs) lowerBound() bool {
	return !slices.ContainsFunc(c.Rows, func(e analysis.Efficiency) bool { return e.CPUPerGbit != nil })
}

// About says what the efficiency of a step means.
func (c costs) About() []string {
	var lines []string
	choices := 0
	for _, e := range c.Rows {
		if e.Contender != c.baseline {
			choices++
		}
	}
	if names := c.frontier(); len(names) > 0 && len(names) < choices {
		lines = append(lines, "Most goodput for the CPU, by the medians: "+strings.Join(names, ", ")+". No other pod network is better in both; neighbours may be alike.")
	}
	if c.lowerBound() {
		lines = append(lines, "CPU is user and system only, the mean of client and server: a lower bound, by which nobody is ranked.")
	}
	return lines
}

// CostHead is the head of the table whose rows CostCells returns.
var CostHead = []string{"contender", "Goodput", "CPU per Gbit/s", "2024 formula", "Memory over baseline", "frontier"}

// CostCells returns the row of a contender.
func CostCells(e *analysis.Efficiency) []string {
	frontier, published := "", unit.Missing
	if e.Frontier {
		frontier = "yes"
	}
	cpu := Estimate(e.CPUPerGbit, "CPU-s/Gbit")
	if e.CPUPerGbit == nil && e.UserSystem != nil {
		cpu = "≥ " + Estimate(e.UserSystem, "CPU-s/Gbit")
	}
	if e.Published != nil {
		published = unit.Format(*e.Published, "CPU-s/Gbit")
	}
	return []string{e.Contender, Estimate(&e.Goodput, "bit/s"), cpu, published, Estimate(e.MemoryOverhead, "bytes"), frontier}
}
