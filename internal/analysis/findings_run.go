package analysis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// This file finds what limits the run as a whole.

func noBaseline(e *evidence) []Finding {
	baseline := e.run.Baseline
	if baseline == "" {
		return []Finding{{Text: "the run names no baseline: there are no ratios"}}
	}
	type where struct {
		group
		step string
	}
	has := map[where]bool{}
	for _, s := range e.valid {
		if s.Contender == baseline {
			has[where{groupOf(s), s.Step}] = true
		}
	}
	lacking := map[group][]string{}
	for _, s := range e.valid {
		g := groupOf(s)
		if e.unpaired() && !e.measured[result.Key{Contender: baseline, Underlay: s.Underlay, Step: s.Step}] && e.has(baseline) {
			continue // notMeasured says it
		}
		if !e.run.Plan.Takes(baseline, s.Step) && e.direct(s.Step) != "" && has[where{g, e.direct(s.Step)}] {
			continue // the same load from pod to pod stands in
		}
		if s.Contender != baseline && !has[where{g, s.Step}] && !slices.Contains(lacking[g], s.Step) {
			lacking[g] = append(lacking[g], s.Step)
		}
	}
	var list []Finding
	for _, g := range e.groups {
		if steps := lacking[g]; len(steps) > 0 {
			slices.SortFunc(steps, e.compareSteps)
			list = append(list, Finding{Contender: baseline,
				Text: fmt.Sprintf("%sno valid sample of %s: there are no ratios", e.in(g), andList(steps))})
		}
	}
	return list
}

// has says that a contender has a sample at all.
func (e *evidence) has(contender string) bool {
	return slices.ContainsFunc(e.samples, func(s result.Sample) bool { return s.Contender == contender })
}

// zeroBaseline names the figures that have no ratios because the baseline's is
// zero in some round: leaving that round out would bend the rest.
func zeroBaseline(e *evidence) []Finding {
	var list []Finding
	for _, g := range e.groups {
		var parts []string
		for _, at := range e.places {
			if at.group != g || !slices.Contains(shown, at.Metric) {
				continue
			}
			rounds := map[int]bool{}
			for c, own := range e.figures[at] {
				if c == e.run.Baseline || !slices.ContainsFunc(own.values(), func(v float64) bool { return v != 0 }) {
					continue // nothing and nothing is no ratio that anybody misses
				}
				for _, round := range e.zeroRounds(at, c) {
					rounds[round] = true
				}
			}
			if len(rounds) > 0 {
				parts = append(parts, fmt.Sprintf("%s %s in %s", at.Step, at.Metric, roundsText(sortedKeys(rounds))))
			}
		}
		if len(parts) > 0 {
			list = append(list, Finding{Contender: e.run.Baseline, Text: e.in(g) + "zero, so that there are no ratios to it: " + shortened(parts)})
		}
	}
	return list
}

// shown are the metrics whose lack of ratios somebody misses.
var shown = []string{
	"goodput", "retransmits", "loss", "jitter", "rate", "latency_mean", "latency_p50", "latency_p99",
	"cpu_per_gbit", "cpu_per_request", "memory_used", "setup_time",
}

func tooFewRounds(e *evidence) []Finding {
	needs := stat.NeedsForInterval(e.opt.Confidence)
	contenders := 0           // most at one place
	valid := map[string]int{} // rounds by contender and step
	var order []string
	for _, r := range e.results {
		contenders = max(contenders, len(e.figures[place{group{r.Kernel, r.Underlay}, r.Step, r.Metric}]))
		name := e.in(group{r.Kernel, r.Underlay}) + r.Contender + " " + r.Step
		if valid[name] == 0 {
			order = append(order, name)
		}
		valid[name] = max(valid[name], r.N)
	}
	var short []string
	for _, name := range order {
		if n := valid[name]; n < needs {
			short = append(short, fmt.Sprintf("%s (%d)", name, n))
		}
	}
	tiers := roundsForTiers(contenders, e.opt.Alpha)
	confidence := percent(e.opt.Confidence)
	rounds := e.rounds()
	switch {
	case len(e.results) == 0:
		return nil
	case rounds < needs:
		text := fmt.Sprintf("%s: an interval at %s needs %d", plural(rounds, "round"), confidence, needs)
		if contenders > 1 {
			text += fmt.Sprintf(", telling %d contenders apart %d", contenders, tiers)
		}
		return []Finding{{Text: text, Next: fmt.Sprintf("Run again with --rounds %d or more.", max(needs, tiers))}}
	case len(short) > 0:
		if more := len(short) - mostListed; more > 0 {
			short = append(short[:mostListed], fmt.Sprintf("and %d more", more))
		}
		return []Finding{{
			Text: fmt.Sprintf("fewer valid rounds than the %d that an interval at %s needs: %s", needs, confidence, strings.Join(short, ", ")),
			Next: fmt.Sprintf("Run again with more than %d rounds, or mend what made samples invalid.", rounds)}}
	case contenders > 1 && rounds < tiers:
		return []Finding{{
			Text: fmt.Sprintf("%d rounds: telling %d contenders apart needs %d, so there are no tiers", rounds, contenders, tiers),
			Next: fmt.Sprintf("Run again with --rounds %d or more.", tiers)}}
	}
	return nil
}

// EmulatedKey is the environment key that is "true" when the kernel ran on an
// emulated CPU.
const EmulatedKey = "arena.emulated"

func emulatedKernel(e *evidence) []Finding {
	if e.run.Environment[EmulatedKey] != "true" {
		return nil
	}
	return []Finding{{Text: "the kernel ran on an emulated CPU: every figure is many times worse than on real hardware"}}
}

func separateGroups(e *evidence) []Finding {
	groups := e.groups
	if len(groups) < 2 {
		return nil
	}
	names := make([]string, len(groups))
	for i, g := range groups {
		names[i] = e.name(g)
	}
	return []Finding{{Text: "compared separately: " + strings.Join(names, "; ")}}
}
