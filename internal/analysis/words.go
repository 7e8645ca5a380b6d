package analysis

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// This file is how findings are worded.

// in names the group in front of a sentence where there is more than one.
func (e *evidence) in(g group) string {
	if len(e.groups) < 2 {
		return ""
	}
	return e.name(g) + ": "
}

// name is what tells a group from the others: a kernel or underlay that all
// have in common is left out.
func (e *evidence) name(g group) string {
	kernel, underlay := g.Kernel, g.Underlay
	if !slices.ContainsFunc(e.groups, func(o group) bool { return o.Kernel != kernel }) {
		g.Kernel = ""
	}
	if !slices.ContainsFunc(e.groups, func(o group) bool { return o.Underlay != underlay }) {
		g.Underlay = ""
	}
	return g.String()
}

func (g group) String() string {
	var parts []string
	if g.Kernel != "" {
		parts = append(parts, "kernel "+g.Kernel)
	}
	if g.Underlay != "" {
		parts = append(parts, "underlay "+g.Underlay)
	}
	return strings.Join(parts, ", ")
}

// groups are the groups that samples were taken in, by name.
func groups(samples []result.Sample) []group {
	set := map[group]bool{}
	for i := range samples {
		set[groupOf(&samples[i])] = true
	}
	return slices.SortedFunc(maps.Keys(set), func(a, b group) int {
		return cmp.Or(cmp.Compare(a.Kernel, b.Kernel), cmp.Compare(a.Underlay, b.Underlay))
	})
}

// rounds are those planned, or those that samples name where there are more.
func (e *evidence) rounds() int {
	rounds := e.run.Plan.Rounds
	for i := range e.samples {
		rounds = max(rounds, e.samples[i].Round)
	}
	return rounds
}

// roundsText is "round 3" or "rounds 1, 2 and 5".
func roundsText(rounds []int) string {
	words := make([]string, len(rounds))
	for i, round := range rounds {
		words[i] = strconv.Itoa(round)
	}
	if len(words) == 1 {
		return "round " + words[0]
	}
	return "rounds " + andList(words)
}

func andList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

var plural = unit.Plural

func percent(share float64) string {
	return strconv.FormatFloat(share*100, 'g', 3, 64) + " %"
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
