package layout

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/unit"
)

// This file says how certain the figures of a column are: what causes most of their error,
// and which contenders are too close to each other.

var errorWords = map[string]string{
	analysis.ErrorRounds:    "what differs from round to round",
	analysis.ErrorTick:      "the ticks by which the kernel counts CPU time",
	analysis.ErrorEdges:     "the edges of the recorded window",
	analysis.ErrorClock:     "the resolution of clocks and histograms",
	analysis.ErrorGenerator: "the load generator's own delay",
}

// errorOf names the largest source of a typical contender's error in the column; "" if no
// source is known.
func (g *Group) errorOf(c Column) string {
	var largest []analysis.ErrorPart
	for _, one := range g.Contenders {
		if f := g.Figure(one.ID, c); f != nil && len(f.Errors) > 0 {
			largest = append(largest, f.Errors[0])
		}
	}
	if len(largest) == 0 {
		return ""
	}
	slices.SortStableFunc(largest, func(a, b analysis.ErrorPart) int { return cmp.Compare(a.Relative, b.Relative) })
	middle := largest[len(largest)/2]
	return fmt.Sprintf("most of the error is %s, ±%s for a typical contender", errorWords[middle.Source], unit.FormatPercent(middle.Relative))
}

// closeOf names the nearest pair of contenders that can't be told apart; "" if there is
// none.
func (g *Group) closeOf(c Column) string {
	text, minimum := "", 0.0
	for _, one := range g.Contenders {
		f := g.Figure(one.ID, c)
		if f == nil || f.Closest == nil || f.Closest.MDD == nil {
			continue
		}
		other := g.Figure(f.Closest.Contender, c)
		if other == nil || !(other.Median > 0) || !(f.Median > 0) {
			continue
		}
		far := max(f.Median/other.Median, other.Median/f.Median)
		if text != "" && far >= minimum {
			continue
		}
		minimum = far
		text = fmt.Sprintf("%s and %s are %s apart, and these rounds show a difference of %s",
			f.Contender, f.Closest.Contender, unit.FormatPercent(far-1), unit.FormatPercent(*f.Closest.MDD))
	}
	return text
}

// Certainty returns a sentence for each column for which errorOf or closeOf returns a text.
func (g *Group) Certainty(columns []Column) []string {
	var lines []string
	for _, c := range columns {
		source, pair := g.errorOf(c), g.closeOf(c)
		if source == "" && pair == "" {
			continue
		}
		line := c.Step + " " + c.Head() + ": " + source
		if source != "" && pair != "" {
			line += "; "
		}
		lines = append(lines, line+pair+".")
	}
	return lines
}
