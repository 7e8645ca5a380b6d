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

// This file finds where the figures are of the rounds that survived: those whose
// samples, or whose clock in a sample, were not left out.

// spoiledClocks names the clocks that are left out of samples that count.
func spoiledClocks(e *evidence) []analysis.Finding {
	clocks := map[spot][]string{}
	var list []analysis.Finding
	for _, g := range gather(e, func(s *result.Sample) []result.Reason {
		if s.Verdict != result.Valid || len(s.Spoiled) == 0 {
			return nil
		}
		at := spot{Group: analysis.GroupOf(s), Contender: s.Contender, Step: s.Step}
		clocks[at] = nil
		for _, spoiled := range s.Spoiled {
			clocks[at] = append(clocks[at], spoiled.Clock)
		}
		return s.Spoiled[0].Reasons // every clock has the same
	}, func(s *result.Sample, code string) spot {
		return spot{analysis.GroupOf(s), s.Contender, s.Step, code}
	}) {
		at := g.spot
		at.Code = ""
		f := g.finding(e, analysis.AndList(clocks[at])+" left out")
		f.Code, f.Excluded = g.Code, true
		list = append(list, f)
	}
	return list
}

// fewestBeyond is from how many rounds, as stat.RoundsBeyond counts them, the requests beyond
// a percentile must come in order to be more than one stall; of leastRounds or more.
const (
	fewestBeyond = 1.5
	leastRounds  = 3
)

// oneStallTail names the tails that a single stall made.
func oneStallTail(e *evidence) []analysis.Finding {
	var list []analysis.Finding
	for _, at := range e.Places {
		if at.Row().Aspect != result.Tail {
			continue
		}
		var names []string
		for _, r := range e.Results {
			if r.Kernel == at.Kernel && r.Underlay == at.Underlay && r.Step == at.Step && r.Metric == at.Metric &&
				r.N >= leastRounds && r.RoundsBeyond > 0 && r.RoundsBeyond < fewestBeyond {
				names = append(names, r.Contender)
			}
		}
		if len(names) == 0 {
			continue
		}
		f := analysis.Finding{Step: at.Step, Text: fmt.Sprintf("%s%s of %s is one stall's: the requests beyond it come from one round as good as alone",
			e.GroupPrefix(at.Group), at.Metric, analysis.AndList(names))}
		if len(names) == 1 {
			f.Contender = names[0]
		}
		list = append(list, f)
	}
	return list
}

// survival is how many rounds of each contender count at a step, for all figures or
// for those of one clock.
type survival struct {
	analysis.Group
	step, clock string
	contenders  []string
	counts, of  []int
}

// survivals are those of all steps: of the samples, and of every clock that is spoiled in
// any sample. A sample that is not valid does not count for its clocks either way.
func survivals(e *evidence) []survival {
	type site struct {
		analysis.Group
		step, clock string
	}
	counts, of := map[site]map[string]int{}, map[site]map[string]int{}
	count := func(at site, contender string, holds bool) {
		if of[at] == nil {
			counts[at], of[at] = map[string]int{}, map[string]int{}
		}
		of[at][contender]++
		if holds {
			counts[at][contender]++
		}
	}
	clocks := map[site]bool{}
	for _, s := range e.Valid {
		for _, spoiled := range s.Spoiled[:min(1, len(s.Spoiled))] { // the others share its fate
			clocks[site{analysis.GroupOf(s), s.Step, spoiled.Clock}] = true
		}
	}
	for i := range e.Samples {
		s := &e.Samples[i]
		count(site{analysis.GroupOf(s), s.Step, ""}, s.Contender, s.Verdict == result.Valid)
		for at := range clocks {
			if at.Group == analysis.GroupOf(s) && at.step == s.Step && s.Verdict == result.Valid {
				count(at, s.Contender, s.Holds(at.clock))
			}
		}
	}
	var list []survival
	for at, byContender := range of {
		found := survival{Group: at.Group, step: at.step, clock: at.clock}
		for contender := range byContender {
			found.contenders = append(found.contenders, contender)
		}
		slices.SortFunc(found.contenders, e.CompareContenders)
		for _, contender := range found.contenders {
			found.counts, found.of = append(found.counts, counts[at][contender]), append(found.of, byContender[contender])
		}
		list = append(list, found)
	}
	slices.SortFunc(list, func(a, b survival) int {
		return cmp.Or(e.CompareSteps(a.step, b.step), strings.Compare(a.clock, b.clock),
			strings.Compare(a.Kernel, b.Kernel), strings.Compare(a.Underlay, b.Underlay))
	})
	return list
}

// unevenExclusion names steps at which the samples of some contenders were left out
// more often than chance does: an exact test of every step, Holm over all of them.
func unevenExclusion(e *evidence) []analysis.Finding {
	all := survivals(e)
	p, least := make([]float64, len(all)), make([]float64, len(all))
	for i, s := range all {
		p[i], least[i] = stat.Uneven(s.counts, s.of)
	}
	var list []analysis.Finding
	for i, adjusted := range stat.HolmTestable(p, least, e.Opt.Alpha) {
		s := all[i]
		if adjusted > e.Opt.Alpha {
			continue
		}
		what, parts := "contenders here: samples were", []string{}
		if s.clock != "" {
			what = s.clock + " here, though other figures stand: it was"
		}
		for k, contender := range s.contenders {
			parts = append(parts, fmt.Sprintf("%s %d of %d", contender, s.counts[k], s.of[k]))
		}
		list = append(list, analysis.Finding{Step: s.step, Text: fmt.Sprintf(
			"%sdo not compare %s left out more often of some than of others (p = %.2g), so that unlike rounds are left; these count: %s",
			e.GroupPrefix(s.Group), what, p[i], strings.Join(parts, ", "))})
	}
	return list
}
