package layout

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// This file describes a contender that stands alone, as a cluster's own network does: there is
// nothing to choose, but there is what is usual.

// alone says in a sentence how the only contender compares with the baseline in the columns of
// the answer, and whether that is usual; "" if there are several contenders or no figures.
func (v answer) alone(g *Group) string {
	who, parts := "", []string(nil)
	var usual, unusual []string
	bounded, transport := true, ""
	for _, c := range v.AnswerColumns(g) {
		var others []*analysis.Result
		for _, one := range g.Contenders {
			if f := g.Figure(one.ID, c); f != nil && f.Ranked && !v.isHost(f) {
				others = append(others, f)
			}
		}
		if len(others) != 1 || !v.Usable(g, c) || others[0].VsBaseline == nil {
			return ""
		}
		f := others[0]
		name, _ := v.nameAlone(f)
		s, known := v.single(g, c, f)
		if !known {
			return ""
		}
		if who = name; len(parts) > 0 {
			s = strings.TrimPrefix(s, name+" ")
			_, s, _ = strings.Cut(s, " ") // has, have
		}
		parts = append(parts, s)
		bounded = bounded && f.VsBaseline.CI != nil
		if f.Usual == nil {
			continue
		}
		transport = transports[f.Usual.Transport]
		words := v.times(c, f.Usual.Ratios[0], f.Usual.Ratios[1])
		switch at := position(f, c); at {
		case "":
			usual = append(usual, words)
		default:
			unusual = append(unusual, fmt.Sprintf("its %s is %s than usual for %s (%s)", lowerFirst(c.Head()), at, transport, words))
		}
	}
	if who == "" {
		return ""
	}
	s := analysis.AndList(parts)
	if who == "pods" {
		s = "P" + s[1:]
	}
	if !bounded && v.Wanted != nil {
		s += fmt.Sprintf("; %d rounds give an interval", v.Wanted.Rounds)
	}
	switch {
	case len(unusual) > 0:
		s += "; " + analysis.AndList(unusual)
		if v.Run.Arena == "kube" && slices.ContainsFunc(unusual, func(s string) bool { return strings.Contains(s, " worse ") }) {
			s += ": cnibench diagnose says why"
		}
	case len(usual) > 0:
		s += "; usual for " + transport + " (" + analysis.AndList(usual) + ")"
	}
	return s + "."
}

// position says how a contender's ratio compares with what is usual: "" is usual. Where the ratio
// has an interval, all of it must lie outside.
func position(f *analysis.Result, c Column) string {
	low, high := f.VsBaseline.Ratio, f.VsBaseline.Ratio
	if f.VsBaseline.CI != nil {
		low, high = f.VsBaseline.CI[0], f.VsBaseline.CI[1]
	}
	switch lower := c.Better == result.Lower; {
	case high < f.Usual.Ratios[0] && lower, low > f.Usual.Ratios[1] && !lower:
		return "better"
	case high < f.Usual.Ratios[0], low > f.Usual.Ratios[1]:
		return "worse"
	}
	return ""
}

// nameAlone returns the words for a contender that stands alone, and for the baseline's figures.
func (v answer) nameAlone(f *analysis.Result) (who, whose string) {
	if v.Run.Arena == "kube" && f.Contender == "this-cluster" {
		return "pods", "the nodes'"
	}
	return f.Contender, v.Baseline + "'s"
}

// single compares the only contender of a column with the baseline; known is false if it has too
// few rounds for a ratio.
func (v answer) single(g *Group, c Column, f *analysis.Result) (sentence string, known bool) {
	who, whose := v.nameAlone(f)
	has := "has"
	if who == "pods" {
		has = "have"
	}
	base := g.Figure(v.Baseline, c)
	if base == nil || base.Median <= 0 {
		return fmt.Sprintf("%s %s %s", who, has, Value(f)), false
	}
	if f.VsBaseline == nil {
		return fmt.Sprintf("%s %s %s where %s has %s; %s are too few for a ratio", who, has, Value(f), v.Baseline, Value(base), unit.Plural(v.CountRounds(g, c), "round")), false
	}
	interval := ""
	if ci := f.VsBaseline.CI; ci != nil {
		interval = "; in this run " + v.times(c, ci[0], ci[1])
	}
	ratio := v.times(c, f.VsBaseline.Ratio, f.VsBaseline.Ratio)
	if c.Better != result.Lower {
		ratio += " of"
	}
	return fmt.Sprintf("%s %s %s %s %s (%s: %s%s)", who, has, ratio, whose, lowerFirst(c.Head()), v.StepName(c.Step), outOf(Value(f), Value(base)), interval), true
}

// times returns a range of ratios as "28–65 %", where more is better, or as "1.4–2.6 times".
func (v answer) times(c Column, low, high float64) string {
	span := func(low, high string) string {
		if low == high {
			return low
		}
		return low + "–" + high
	}
	if c.Better == result.Lower {
		return span(unit.Ratio(low), unit.Ratio(high)) + " times"
	}
	return span(fmt.Sprintf("%.0f", 100*low), fmt.Sprintf("%.0f", 100*high)) + " %"
}

// outOf returns "7.95 of 12.6 Gbit/s".
func outOf(value, base string) string {
	number, unitOf, _ := strings.Cut(value, " ")
	if _, other, _ := strings.Cut(base, " "); other == unitOf {
		value = number
	}
	return value + " of " + base
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }
