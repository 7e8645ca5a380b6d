package findings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// This file finds figures that come from a biased selection of rounds, because samples or
// clocks of samples were left out.

// spoiledClocks lists the clocks that are left out of valid samples.
func spoiledClocks(e *evidence) []analysis.Finding {
	clocks := map[findingKey][]string{}
	var list []analysis.Finding
	for _, g := range groupSamples(e, func(s *result.Sample) []result.Reason {
		if s.Verdict != result.Valid || len(s.DroppedClocks) == 0 {
			return nil
		}
		at := keyOf(s, "")
		clocks[at] = nil
		for _, spoiled := range s.DroppedClocks {
			clocks[at] = append(clocks[at], spoiled.Clock)
		}
		return s.DroppedClocks[0].Reasons // all clocks have the same reasons
	}, keyOf) {
		at := g.findingKey
		at.Code = ""
		f := g.toFinding(e, analysis.AndList(clocks[at])+" left out")
		f.Severity, f.Excluded = analysis.Warn, true
		list = append(list, f)
	}
	return list
}

// If the requests beyond a percentile come from fewer rounds than minBeyond (as
// stat.RoundsBeyond counts), a single stall made the percentile. Figures with fewer rounds
// than minRounds are not judged.
const (
	minBeyond = 1.5
	minRounds = 3
)

// oneStallTail finds tails that a single stall made.
func oneStallTail(e *evidence) []analysis.Finding {
	var list []analysis.Finding
	for _, at := range e.Keys {
		if at.Row().Aspect != result.Tail {
			continue
		}
		var names []string
		for _, r := range e.Results {
			if r.Kernel == at.Kernel && r.Underlay == at.Underlay && r.Step == at.Step && r.Metric == at.Metric &&
				r.N >= minRounds && r.RoundsBeyond > 0 && r.RoundsBeyond < minBeyond {
				names = append(names, r.Contender)
			}
		}
		if len(names) == 0 {
			continue
		}
		f := analysis.Finding{Step: at.Step, Text: fmt.Sprintf("%s%s of %s shows a single stall: nearly all requests beyond it come from one round",
			e.GroupPrefix(at.ComparableSet), at.Metric, analysis.AndList(names))}
		if len(names) == 1 {
			f.Contender = names[0]
		}
		list = append(list, f)
	}
	return list
}

// survival says how many samples of each contender count at a step: for all figures
// (clock "") or for those of one clock.
type survival struct {
	analysis.ComparableSet
	step, clock   string
	contenders    []string
	counts, tries []int // samples that count, and all samples, by contender
}

// survivals returns a survival for every step, and for every clock that is spoiled in any
// sample of the step. Invalid samples are not counted for clocks.
func survivals(e *evidence) []survival {
	type site struct {
		analysis.ComparableSet
		step, clock string
	}
	counts, tries := map[site]map[string]int{}, map[site]map[string]int{}
	count := func(at site, contender string, counted bool) {
		if tries[at] == nil {
			counts[at], tries[at] = map[string]int{}, map[string]int{}
		}
		tries[at][contender]++
		if counted {
			counts[at][contender]++
		}
	}
	clocks := map[site]bool{}
	for _, s := range e.Valid {
		for _, spoiled := range s.DroppedClocks[:min(1, len(s.DroppedClocks))] { // the other clocks are spoiled in the same samples
			clocks[site{analysis.SetOf(s), s.Step, spoiled.Clock}] = true
		}
	}
	for i := range e.Samples {
		s := &e.Samples[i]
		count(site{analysis.SetOf(s), s.Step, ""}, s.Contender, s.Verdict == result.Valid)
		for at := range clocks {
			if at.ComparableSet == analysis.SetOf(s) && at.step == s.Step && s.Verdict == result.Valid {
				count(at, s.Contender, s.Holds(at.clock))
			}
		}
	}
	var list []survival
	for at, byContender := range tries {
		found := survival{ComparableSet: at.ComparableSet, step: at.step, clock: at.clock}
		for contender := range byContender {
			found.contenders = append(found.contenders, contender)
		}
		slices.SortFunc(found.contenders, e.CompareContenders)
		for _, contender := range found.contenders {
			found.counts, found.tries = append(found.counts, counts[at][contender]), append(found.tries, byContender[contender])
		}
		list = append(list, found)
	}
	slices.SortFunc(list, func(a, b survival) int {
		return cmp.Or(e.CompareSteps(a.step, b.step), strings.Compare(a.clock, b.clock),
			strings.Compare(a.Kernel, b.Kernel), strings.Compare(a.Underlay, b.Underlay))
	})
	return list
}

// unevenExclusion finds steps at which samples of some contenders were left out
// significantly more often than those of others: an exact test of every step, with Holm's
// correction over all steps.
func unevenExclusion(e *evidence) []analysis.Finding {
	all := survivals(e)
	p, minimum := make([]float64, len(all)), make([]float64, len(all))
	for i, s := range all {
		p[i], minimum[i] = stat.CompareCounts(s.counts, s.tries)
	}
	var list []analysis.Finding
	for i, adjusted := range stat.HolmTestable(p, minimum, e.Opt.Alpha) {
		s := all[i]
		if adjusted > e.Opt.Alpha {
			continue
		}
		what, parts := "contenders here: samples were", []string{}
		if s.clock != "" {
			what = s.clock + " here, though other figures stand: it was"
		}
		for k, contender := range s.contenders {
			parts = append(parts, fmt.Sprintf("%s %d of %d", contender, s.counts[k], s.tries[k]))
		}
		list = append(list, analysis.Finding{Step: s.step, Text: fmt.Sprintf(
			"%sdo not compare %s excluded for some more often than for others (p = %.2g). Valid: %s",
			e.GroupPrefix(s.ComparableSet), what, p[i], joinShort(parts))})
	}
	return list
}
