package findings

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// This file tests the windows of a step together, because a single window of a few seconds
// is too short to show a change of level.

const (
	leastPooled = 0.05 // smallest relative change of the level, median over samples
	middleCut   = 1    // index in windowCuts
)

// windowCuts are the places at which a window is cut in two, as shares of its length. They
// are symmetric.
var windowCuts = []float64{1. / 3, 1. / 2, 2. / 3}

// changesWithin returns, for each of windowCuts, how much higher the received rate was
// after the cut than before, as a difference of logarithms. It returns nil if the recording
// has too few values.
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

// busiestReceiver returns the node that received most, or nil if no node received anything.
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

// pooledChanges finds steps whose samples, of all contenders together, receive more or less
// in the later part of the window, with Holm's correction over the steps with enough
// samples. With early, it returns only early changes, which a longer warm-up would avoid,
// else only the others.
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
			continue // the last condition: single samples of the step have such a finding already
		}
		list = append(list, analysis.Finding{Step: steps[i], Text: fmt.Sprintf(
			"the received rate is %+.0f %% after the first %.0f %% of the window, the middle of %s together (p = %.2g)",
			100*change, 100*windowCuts[at[i]], unit.Plural(len(changes), "sample"), p[i])})
	}
	return list
}

// steppingContenders finds contenders whose rate changes its level within the window, at
// another place in each round. It tests all rounds of a contender together, with Holm's
// correction over the contenders of the run.
func steppingContenders(e *evidence) []analysis.Finding {
	series := map[spot][][]float64{}
	var order []spot
	for _, t := range e.traced {
		values, _ := flow(t.trace)
		if len(values) < leastSeries || stat.Median(values) < leastFlow {
			continue
		}
		at := spotOf(t.Sample, "")
		if series[at] == nil {
			order = append(order, at)
		}
		series[at] = append(series[at], values)
	}
	var p, changes []float64
	for _, at := range order {
		p = append(p, stat.Stepped(series[at]))
		var sizes []float64
		for _, values := range series[at] {
			if c := e.Changes.Change(values); c.At > 0 {
				sizes = append(sizes, math.Abs(math.Log(stat.Median(values[c.At:])/stat.Median(values[:c.At]))))
			}
		}
		changes = append(changes, math.Expm1(stat.Median(sizes)))
	}
	var list []analysis.Finding
	for i, adjusted := range stat.Holm(p) {
		at := order[i]
		if adjusted > e.Opt.Alpha || !(changes[i] >= leastLevel) || len(series[at]) < 2 ||
			slices.ContainsFunc(e.levels, func(l levelChange) bool { return l.Step == at.Step && l.Contender == at.Contender }) {
			continue // the last condition: single samples of the contender have such a finding already
		}
		list = append(list, analysis.Finding{Contender: at.Contender, Step: at.Step, Text: fmt.Sprintf(
			"%sthe received rate changes its level within the window, by %.0f %% in the middle of %s (p = %.2g)",
			e.GroupPrefix(at.Group), 100*changes[i], unit.Plural(len(series[at]), "round"), p[i])})
	}
	return list
}
