package layout

import (
	"fmt"
	"slices"
	"strconv"
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

// groups returns the contenders of each cluster; cluster n is at index n-1.
func (c costs) groups() [][]string {
	var groups [][]string
	for _, e := range c.Rows {
		for e.Cluster > len(groups) && e.Cluster <= len(c.Rows) {
			groups = append(groups, nil)
		}
		if e.Cluster > 0 && e.Cluster <= len(groups) {
			groups[e.Cluster-1] = append(groups[e.Cluster-1], e.Contender)
		}
	}
	return groups
}

// lowerBound says whether the step has only CPU time of user and system.
func (c costs) lowerBound() bool {
	return !slices.ContainsFunc(c.Rows, func(e analysis.Efficiency) bool { return e.CPUPerGbit != nil })
}

// groupsText returns the clusters as "1 (19.8 Gbit/s – 22.7 Gbit/s): a, b; 2 (9.1 Gbit/s):
// c", "" without clusters. It contains memory if all contenders of a cluster have it.
func (c costs) groupsText() string {
	var parts []string
	for i, names := range c.groups() {
		var goodput, memory []float64
		for _, e := range c.Rows {
			if e.Cluster != i+1 {
				continue
			}
			goodput = append(goodput, e.Goodput.Median)
			if e.MemoryOverhead != nil {
				memory = append(memory, e.MemoryOverhead.Median)
			}
		}
		if len(goodput) == 0 {
			continue // no contender of the cluster has a row
		}
		about := span(goodput, "bit/s")
		if len(memory) == len(goodput) {
			about += ", " + span(memory, "bytes") + " over " + c.baseline
		}
		parts = append(parts, fmt.Sprintf("%d (%s): %s", i+1, about, strings.Join(names, ", ")))
	}
	return strings.Join(parts, "; ")
}

// span returns the range of the values as "15.9 Gbit/s – 17.3 Gbit/s". There must be a
// value.
func span(values []float64, unitName string) string {
	low, high := unit.Format(slices.Min(values), unitName), unit.Format(slices.Max(values), unitName)
	if low == high {
		return low
	}
	return low + " – " + high
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
	if groups := c.groupsText(); groups != "" {
		lines = append(lines, "Groups by "+c.features()+": "+groups+".")
	}
	if c.lowerBound() {
		lines = append(lines, "CPU is user and system only, the mean of client and server: a lower bound, by which nobody is ranked.")
	}
	return lines
}

// features returns the figures by which contenders are grouped.
func (c costs) features() string {
	if c.lowerBound() {
		return "goodput and memory"
	}
	return "goodput, CPU and memory"
}

// CostHead is the head of the table whose rows CostCells returns.
var CostHead = []string{"contender", "Goodput", "CPU per Gbit/s", "2024 formula", "Memory over baseline", "Energy per GB", "frontier", "group"}

// CostCells returns the row of a contender.
func CostCells(e analysis.Efficiency) []string {
	frontier, cluster := "", ""
	if e.Frontier {
		frontier = "yes"
	}
	if e.Cluster > 0 {
		cluster = strconv.Itoa(e.Cluster)
	}
	cpu := Estimate(e.CPUPerGbit, "CPU-s/Gbit")
	if e.CPUPerGbit == nil && e.UserSystem != nil {
		cpu = "≥ " + Estimate(e.UserSystem, "CPU-s/Gbit")
	}
	return []string{
		e.Contender, Estimate(&e.Goodput, "bit/s"), cpu, number(e.Published, "CPU-s/Gbit"),
		Estimate(e.MemoryOverhead, "bytes"), energy(e.Energy), frontier, cluster,
	}
}

func energy(e *analysis.Energy) string {
	if e == nil {
		return unit.Missing
	}
	text := strconv.FormatFloat(e.JoulesPerGB, 'g', 3, 64) + " J"
	if !e.Measured {
		text += " (estimate)"
	}
	return text
}

// EnergyBasis says where the figures of energy come from; "" if there are none.
func (v *View) EnergyBasis() string {
	var bases []string
	for _, e := range v.Efficiency {
		if e.Energy != nil && !slices.Contains(bases, e.Energy.Basis) {
			bases = append(bases, e.Energy.Basis)
		}
	}
	if len(bases) == 0 {
		return ""
	}
	return "Energy per decimal gigabyte, " + strings.Join(bases, "; ") + "."
}

func number(v *float64, unitName string) string {
	if v == nil {
		return unit.Missing
	}
	return unit.Format(*v, unitName)
}

// FleetTitle describes the fleet for which costs are computed.
func (v *View) FleetTitle() string {
	f := v.Fleet
	return fmt.Sprintf("A fleet of %s nodes, each sending %g Gbit/s to pods on other nodes", Thousands(float64(f.Nodes)), f.Gbps)
}

// FleetNotes returns what a reader of the fleet's table must know.
func (v *View) FleetNotes() []string {
	f := v.Fleet
	if len(f.Rows) == 0 {
		step := "any step"
		if f.Step != "" {
			step = "step " + f.Step
		}
		return []string{"There is no CPU per Gbit/s of " + step + ": run the suite throughput, or name a step that has it (--fleet step=…)."}
	}
	notes := []string{"Cores: nodes × Gbit/s × CPU per Gbit/s of " + f.Step + ", senders and receivers together, as if the cost of a bit were the same at every load."}
	if !slices.ContainsFunc(f.Rows, func(r analysis.FleetRow) bool { return r.Memory != nil }) {
		notes = append(notes, "No memory: it was not measured, or the nodes shared one machine.")
	} else {
		notes = append(notes, "Memory: what the nodes used over the baseline's while the step ran.")
	}
	if !slices.ContainsFunc(f.Rows, func(r analysis.FleetRow) bool { return !r.Reached }) {
		return notes
	}
	return append(notes, fmt.Sprintf("* one pair of pods carried less than %g Gbit/s.", f.Gbps))
}

// FleetTable returns a head, and a row for each contender. Columns without any figure are
// left out.
func (v *View) FleetTable() (head []string, rows [][]string) {
	f := v.Fleet
	head = []string{"", "CPU cores"}
	has := func(field func(analysis.FleetRow) *float64) bool {
		return slices.ContainsFunc(f.Rows, func(r analysis.FleetRow) bool { return field(r) != nil })
	}
	columns := []struct {
		head   string
		field  func(analysis.FleetRow) *float64
		format func(float64) string
	}{
		{"Memory", func(r analysis.FleetRow) *float64 { return r.Memory }, func(v float64) string { return unit.Format(v, "bytes") }},
		{"Power", func(r analysis.FleetRow) *float64 { return r.Power }, func(v float64) string { return Thousands(v) + " W" }},
		{strings.TrimSpace(f.Currency + " a month"), func(r analysis.FleetRow) *float64 { return r.Month }, Thousands},
	}
	for _, c := range columns {
		if has(c.field) {
			head = append(head, c.head)
		}
	}
	for _, r := range f.Rows {
		name := r.Contender
		if len(v.Groups) > 1 {
			g := Group{Site: Site{Kernel: r.Kernel, Underlay: r.Underlay}}
			name += " (" + g.Title() + ")"
		}
		if !r.Reached {
			name += " *"
		}
		row := []string{name, cores(r.Cores)}
		for _, c := range columns {
			if !has(c.field) {
				continue
			}
			cell := unit.Missing
			if v := c.field(r); v != nil {
				cell = c.format(*v)
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	return head, rows
}

func cores(e analysis.Estimate) string {
	if e.CI == nil {
		return Thousands(e.Median)
	}
	return fmt.Sprintf("%s (%s–%s)", Thousands(e.Median), Thousands(e.CI[0]), Thousands(e.CI[1]))
}

// Thousands returns a number with separators of thousands; a number below 10 keeps one
// digit after the point.
func Thousands(v float64) string {
	if v > -10 && v < 10 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	digits := strconv.FormatFloat(v, 'f', 0, 64)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}
