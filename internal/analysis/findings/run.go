package findings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// This file has the rules about the run as a whole.

func noBaseline(e *evidence) []analysis.Finding {
	baseline := e.Run.Baseline
	if baseline == "" {
		return []analysis.Finding{{Text: "the run names no baseline: there are no ratios"}}
	}
	type where struct {
		analysis.ComparableSet
		step string
	}
	has := map[where]bool{}
	for _, s := range e.Valid {
		if s.Contender == baseline {
			has[where{analysis.SetOf(s), s.Step}] = true
		}
	}
	lacking := map[analysis.ComparableSet][]string{}
	for _, s := range e.Valid {
		g := analysis.SetOf(s)
		if e.Unpaired() && !e.Measured[result.Key{Contender: baseline, Underlay: s.Underlay, Step: s.Step}] && hasSample(e, baseline) {
			continue // the finding not_measured says so
		}
		if !e.Run.Plan.Takes(baseline, s.Step) && e.Direct(s.Step) != "" && has[where{g, e.Direct(s.Step)}] {
			continue // ratios are to the same load from pod to pod
		}
		if s.Contender != baseline && !has[where{g, s.Step}] && !slices.Contains(lacking[g], s.Step) {
			lacking[g] = append(lacking[g], s.Step)
		}
	}
	var list []analysis.Finding
	for _, g := range e.Sets {
		if steps := lacking[g]; len(steps) > 0 {
			slices.SortFunc(steps, e.CompareSteps)
			f := analysis.Finding{Contender: baseline, Text: fmt.Sprintf("%sno valid sample of %s: there are no ratios", e.GroupPrefix(g), analysis.AndList(steps))}
			if e.Run.Arena == imported && !hasSample(e, baseline) {
				f.Next = "Import again with --baseline ID: " + strings.Join(contendersOf(e), ", ") + "."
			}
			list = append(list, f)
		}
	}
	return list
}

// contendersOf returns the ids of the plan's contenders.
func contendersOf(e *evidence) []string {
	var ids []string
	for _, entry := range e.Run.Plan.Contenders {
		ids = append(ids, entry.ID)
	}
	return slices.Compact(ids)
}

// hasSample says whether a contender has any sample, valid or not.
func hasSample(e *evidence, contender string) bool {
	return slices.ContainsFunc(e.Samples, func(s result.Sample) bool { return s.Contender == contender })
}

// zeroBaseline finds figures without ratios because the baseline's value is zero in some
// round. Ratios without that round would be biased.
func zeroBaseline(e *evidence) []analysis.Finding {
	var list []analysis.Finding
	for _, g := range e.Sets {
		var parts []string
		for _, at := range e.Keys {
			if at.ComparableSet != g || !at.Row().Has(result.RatioMissed) {
				continue
			}
			rounds := map[int]bool{}
			for c, own := range e.Figures[at] {
				if c == e.Run.Baseline || !slices.ContainsFunc(own.Values(), func(v float64) bool { return v != 0 }) {
					continue // nobody misses a ratio of zero to zero
				}
				for _, round := range e.ZeroRounds(at, c) {
					rounds[round] = true
				}
			}
			if len(rounds) > 0 {
				parts = append(parts, fmt.Sprintf("%s %s in %s", at.Step, at.Metric, analysis.RoundsText(analysis.SortedKeys(rounds))))
			}
		}
		if len(parts) > 0 {
			list = append(list, analysis.Finding{Severity: analysis.Info, Contender: e.Run.Baseline, Text: e.GroupPrefix(g) + "zero, so that there are no ratios to it: " + joinShort(parts)})
		}
	}
	return list
}

func tooFewRounds(e *evidence) []analysis.Finding {
	needs := stat.NeedsForInterval(e.Opt.Confidence)
	contenders := 0           // largest number at one place
	valid := map[string]int{} // rounds by contender and step
	var order []string
	for _, r := range e.Results {
		contenders = max(contenders, len(e.Figures[analysis.FigureKey{ComparableSet: analysis.ComparableSet{Kernel: r.Kernel, Underlay: r.Underlay}, Step: r.Step, Metric: r.Metric}]))
		name := e.GroupPrefix(analysis.ComparableSet{Kernel: r.Kernel, Underlay: r.Underlay}) + r.Contender + " " + r.Step
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
	ranks := analysis.RoundsForRanks(contenders, e.Unpaired(), e.Opt.Alpha)
	confidence := unit.FormatPercent(e.Opt.Confidence)
	rounds, wanted := e.Rounds(), max(needs, ranks)
	if w := e.AdviseRounds(); w != nil {
		wanted = w.Rounds
	}
	switch {
	case len(e.Results) == 0:
		return nil
	case rounds < needs:
		text := fmt.Sprintf("%s: an interval at %s needs %d", unit.Plural(rounds, "round"), confidence, needs)
		if e.Run.Arena != imported {
			text += fmt.Sprintf("; run %d", wanted)
		}
		return []analysis.Finding{{Text: text}}
	case len(short) > 0:
		return []analysis.Finding{{Text: fmt.Sprintf("fewer valid rounds than the %d that an interval at %s needs: %s", needs, confidence, joinShort(short))}}
	case contenders > 1 && rounds < ranks:
		return []analysis.Finding{{Text: fmt.Sprintf("%d rounds: letters for %d contenders need %d", rounds, contenders, ranks)}}
	}
	return nil
}

func emulatedKernel(e *evidence) []analysis.Finding {
	if !e.Run.Environment.Emulated() {
		return nil
	}
	return []analysis.Finding{{Text: "the kernel ran on an emulated CPU: every figure is many times worse than on real hardware"}}
}

func separateGroups(e *evidence) []analysis.Finding {
	groups := e.Sets
	if len(groups) < 2 {
		return nil
	}
	names := make([]string, len(groups))
	for i, g := range groups {
		names[i] = e.GroupName(g)
	}
	return []analysis.Finding{{Text: "compared separately: " + strings.Join(names, "; ")}}
}

func mixedVersions(e *evidence) []analysis.Finding {
	tools := e.Run.Tools(e.Samples)
	if len(tools) < 2 {
		return nil
	}
	var parts []string
	for _, tool := range tools {
		count := 0
		for i := range e.Samples {
			if cmp.Or(e.Samples[i].Tool, e.Run.Tool.String()) == tool {
				count++
			}
		}
		parts = append(parts, fmt.Sprintf("%s took %s", tool, unit.Plural(count, "sample")))
	}
	return []analysis.Finding{{Text: "measured by several versions of cnibench: " + strings.Join(parts, ", ")}}
}

// labForm finds contenders whose lab form differs from its product, or was never compared
// with it.
func labForm(e *evidence) []analysis.Finding {
	var list []analysis.Finding
	for _, c := range e.Run.Contenders {
		switch {
		case c.FormDiffers != "":
			list = append(list, analysis.Finding{Contender: c.ID, Text: "compared with the product, " + c.FormDiffers})
		case c.Held == "no" && len(c.Own)+len(c.Reproduced) > 0 && c.Product != "" && !slices.Contains([]string{"kernel", "Kubernetes"}, c.Product) && c.ID != e.Run.Baseline:
			list = append(list, analysis.Finding{Contender: c.ID, Text: "its lab form was never compared with the product"})
		}
	}
	return list
}
