package analysis

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
)

// This file has the words and lists that findings are made of.

// GroupPrefix returns the group's name for the begin of a sentence; "" if the run has one group.
func (e *Evidence) GroupPrefix(g ComparableSet) string {
	if len(e.Sets) < 2 {
		return ""
	}
	return e.GroupName(g) + ": "
}

// GroupName returns what distinguishes a group from the others: a kernel or underlay that
// all groups have is left out.
func (e *Evidence) GroupName(g ComparableSet) string {
	kernel, underlay := g.Kernel, g.Underlay
	if !slices.ContainsFunc(e.Sets, func(o ComparableSet) bool { return o.Kernel != kernel }) {
		g.Kernel = ""
	}
	if !slices.ContainsFunc(e.Sets, func(o ComparableSet) bool { return o.Underlay != underlay }) {
		g.Underlay = ""
	}
	return g.String()
}

func (g ComparableSet) String() string {
	var parts []string
	if g.Kernel != "" {
		parts = append(parts, "kernel "+g.Kernel)
	}
	if g.Underlay != "" {
		parts = append(parts, "underlay "+g.Underlay)
	}
	return strings.Join(parts, ", ")
}

// comparableSets returns the groups in which samples were taken, by name.
func comparableSets(samples []result.Sample) []ComparableSet {
	set := map[ComparableSet]bool{}
	for i := range samples {
		set[SetOf(&samples[i])] = true
	}
	return slices.SortedFunc(maps.Keys(set), func(a, b ComparableSet) int {
		return cmp.Or(cmp.Compare(a.Kernel, b.Kernel), cmp.Compare(a.Underlay, b.Underlay))
	})
}

// Rounds returns the number of planned rounds, or the highest round of a sample if that is more.
func (e *Evidence) Rounds() int {
	rounds := e.Run.Plan.Rounds
	for i := range e.Samples {
		rounds = max(rounds, e.Samples[i].Round)
	}
	return rounds
}

// RoundsText returns "round 3" or "rounds 1, 2 and 5".
func RoundsText(rounds []int) string {
	words := make([]string, len(rounds))
	for i, round := range rounds {
		words[i] = strconv.Itoa(round)
	}
	if len(words) == 1 {
		return "round " + words[0]
	}
	return "rounds " + AndList(words)
}

// AndList joins words with commas and a last "and".
func AndList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// SortedKeys returns the keys of a map in order.
func SortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// ChangeEach returns a copy of the list with every element changed.
func ChangeEach[T any](list []T, change func(*T)) []T {
	list = slices.Clone(list)
	for i := range list {
		change(&list[i])
	}
	return list
}

// Count returns how many elements of the list match.
func Count[T any](list []T, matches func(T) bool) int {
	n := 0
	for _, x := range list {
		if matches(x) {
			n++
		}
	}
	return n
}
