package findings

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/stat"
)

// This file pools the windows of a step: in windows of a few seconds one sample alone
// shows no change of level.

const (
	leastPooled = 0.05 // change of the level, relative, of the middle sample
	middleCut   = 1    // of windowCuts
)

// windowCuts are where a window is cut in two, as shares of it. They are symmetric.
var windowCuts = []float64{1. / 3, 1. / 2, 2. / 3}

// changesWithin are by how much more a sample received after each of windowCuts than before
// it, as differences of logarithms; nil where its recording does not tell.
func changesWithin(t *analysis.Trace) []float64 {
	node := busiestReceiver(t)
	if node == nil || node.Window <= 0 {
		return nil
	}
	received := make([]float64, len(windowCuts)) // up to each cut
	whole, from, intervals := 0.0, 0.0, 0
	for i, end := range node.Times {
		if i >= len(node.Receive) || end <= 0 || math.IsNaN(node.Receive[i]) {
			continue
		}
		to := min(end, node.Window)
		if to > from {
			intervals++
		}
		for k, cut := range windowCuts {
			received[k] += node.Receive[i] * max(0, min(to, cut*node.Window)-from)
		}
		whole += node.Receive[i] * max(0, to-from)
		from = max(from, to)
	}
	if intervals < 2 || from < 0.95*node.Window || whole/node.Window < leastFlow {
		return nil
	}
	changes := make([]float64, len(windowCuts))
	for k, cut := range windowCuts {
		changes[k] = math.Log((whole - received[k]) / (1 - cut) * cut / received[k])
		if math.IsNaN(changes[k]) || math.IsInf(changes[k], 0) {
			return nil
		}
	}
	return changes
}

// busiestReceiver is the node that received most; nil where none did.
func busiestReceiver(t *analysis.Trace) *analysis.NodeTrace {
	var best *analysis.NodeTrace
	most := 0.0
	for i := range t.Nodes {
		node := &t.Nodes[i]
		if level := stat.Median(analysis.FiniteOnly(node.Within(node.Receive))); level > most {
			best, most = node, level
		}
	}
	return best
}

// pooledChanges are the findings of windows that change in one direction: steps whose
// samples, of all contenders together, receive more or less in the later part of the window.
// Holm over the steps with samples enough. Early changes are the warm-up's.
func pooledChanges(e *evidence, early bool) []analysis.Finding {
	byStep := map[string][][]float64{}
	for _, t := range e.traced {
		if changes := changesWithin(t.trace); changes != nil {
			byStep[t.Step] = append(byStep[t.Step], changes)
		}
	}
	var at []int
	var p, least []float64
	steps := slices.SortedFunc(maps.Keys(byStep), e.CompareSteps)
	for _, step := range steps {
		cut, chance := stat.Mirrored(byStep[step])
		at, p, least = append(at, cut), append(p, chance), append(least, stat.LeastSignedRank(len(byStep[step])))
	}
	var list []analysis.Finding
	for i, adjusted := range stat.HolmTestable(p, least, e.Opt.Alpha) {
		var changes []float64
		for _, c := range byStep[steps[i]] {
			changes = append(changes, c[at[i]])
		}
		change := math.Expm1(stat.Median(changes))
		if adjusted > e.Opt.Alpha || math.Abs(change) < leastPooled || (at[i] <= middleCut) != early ||
			slices.ContainsFunc(e.levels, func(l levelChange) bool { return l.Step == steps[i] && l.early == early }) {
			continue // or the samples say it themselves
		}
		list = append(list, analysis.Finding{Step: steps[i], Text: fmt.Sprintf(
			"the received rate is %+.0f %% after the first %.0f %% of the window, the middle of %s together (p = %.2g)",
			100*change, 100*windowCuts[at[i]], analysis.Plural(len(changes), "sample"), p[i])})
	}
	return list
}

// steppingContenders names contenders whose rate goes to another level within the windows,
// at another place in each: all rounds of a contender together, Holm over the contenders
// of the run.
func steppingContenders(e *evidence) []analysis.Finding {
	type where struct {
		analysis.Group
		contender, step string
	}
	series := map[where][][]float64{}
	var order []where
	for _, t := range e.traced {
		values, _ := flow(t.trace)
		if len(values) < leastSeries || stat.Median(values) < leastFlow {
			continue
		}
		w := where{analysis.GroupOf(t.Sample), t.Contender, t.Step}
		if series[w] == nil {
			order = append(order, w)
		}
		series[w] = append(series[w], values)
	}
	var p []float64
	var changes []float64
	for _, w := range order {
		p = append(p, stat.Stepped(series[w]))
		var sizes []float64
		for _, values := range series[w] {
			if c := e.Changes.Change(values); c.At > 0 {
				sizes = append(sizes, math.Abs(math.Log(stat.Median(values[c.At:])/stat.Median(values[:c.At]))))
			}
		}
		changes = append(changes, math.Expm1(stat.Median(sizes)))
	}
	var list []analysis.Finding
	for i, adjusted := range stat.Holm(p) {
		w := order[i]
		if adjusted > e.Opt.Alpha || !(changes[i] >= leastLevel) || len(series[w]) < 2 ||
			slices.ContainsFunc(e.levels, func(l levelChange) bool { return l.Step == w.step && l.Contender == w.contender }) {
			continue // or the samples say it themselves
		}
		list = append(list, analysis.Finding{Contender: w.contender, Step: w.step, Text: fmt.Sprintf(
			"%sthe received rate changes its level within the window, by %.0f %% in the middle of %s (p = %.2g)",
			e.GroupPrefix(w.Group), 100*changes[i], analysis.Plural(len(series[w]), "round"), p[i])})
	}
	return list
}
