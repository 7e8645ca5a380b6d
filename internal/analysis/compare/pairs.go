package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// This file finds the figures that two runs have in common.

// SelectionError says that none of the runs has a metric, step or contender that was chosen, or
// that the runs have no figure in common.
type SelectionError struct {
	What, Name string   // What is "metric", "step" or "contender"; "" if there is no figure in common
	Have       []string // names that could be chosen, or what each run has
}

func (e *SelectionError) Error() string {
	if e.What == "" {
		return "the runs have no figure in common: " + strings.Join(e.Have, "; ")
	}
	return fmt.Sprintf("%s %s: none of the runs has it; they have %s", e.What, e.Name, strings.Join(e.Have, ", "))
}

// pairing is a comparison of two runs while it is made.
type pairing struct {
	opt           Options
	old, now      *analysis.Evidence
	repeatsOld    []*analysis.Evidence // further runs of either side
	repeatsNew    []*analysis.Evidence
	changes       []Change
	missing       []Missing
	excludedSteps map[string]bool // steps that are not compared because of their rates
	whyLeftOut    []string
}

func newPairing(old, now *result.Record, opt Options) *pairing {
	p := &pairing{opt: opt, old: analysis.Collect(old, opt.Complete(&old.Run.Plan)), now: analysis.Collect(now, opt.Options)}
	for _, repeat := range opt.RepeatsOld {
		p.repeatsOld = append(p.repeatsOld, analysis.Collect(repeat, opt.Complete(&repeat.Run.Plan)))
	}
	for _, repeat := range opt.RepeatsNew {
		p.repeatsNew = append(p.repeatsNew, analysis.Collect(repeat, opt.Complete(&repeat.Run.Plan)))
	}
	return p
}

// runsOf returns all runs of a side, "old" or "new".
func (p *pairing) runsOf(from string) []*analysis.Evidence {
	if from == "old" {
		return slices.Concat([]*analysis.Evidence{p.old}, p.repeatsOld)
	}
	return slices.Concat([]*analysis.Evidence{p.now}, p.repeatsNew)
}

// runName names the run of a side in a sentence. i counts the side's runs from 0.
func (p *pairing) runName(from string, i int) string {
	if !p.repeated() {
		return "the " + from + " run"
	}
	return fmt.Sprintf("%s run %d", from, i+1)
}

// spot is the key by which a figure is found in all runs. The kernel is left out if each
// run has a single kernel, so that two kernels can be compared. Likewise the underlay, if
// the arenas differ: arenas have their own names of underlays.
type spot struct{ kernel, underlay, step, metric string }

// bySpot are the figures of a run or a side, by contender at each spot.
type bySpot map[spot]map[string]figure

func (p *pairing) spotOf(at analysis.FigureKey) spot {
	s := spot{at.Kernel, at.Underlay, at.Step, at.Metric}
	if p.oneOf(func(g analysis.ComparableSet) string { return g.Kernel }) {
		s.kernel = ""
	}
	otherArena := func(e *analysis.Evidence) bool { return e.Run.Arena != p.old.Run.Arena }
	if slices.ContainsFunc(slices.Concat(p.runsOf("old"), p.runsOf("new")), otherArena) && p.oneOf(func(g analysis.ComparableSet) string { return g.Underlay }) {
		s.underlay = ""
	}
	return s
}

// oneOf says whether the property has the same value in all groups of each run.
func (p *pairing) oneOf(property func(analysis.ComparableSet) string) bool {
	for _, e := range slices.Concat(p.runsOf("old"), p.runsOf("new")) {
		if slices.ContainsFunc(e.Sets, func(g analysis.ComparableSet) bool { return property(g) != property(e.Sets[0]) }) {
			return false
		}
	}
	return true
}

// index returns the figures by contender at each spot.
func index(figures []figure) bySpot {
	all := bySpot{}
	for _, f := range figures {
		if all[f.at] == nil {
			all[f.at] = map[string]figure{}
		}
		all[f.at][f.contender] = f
	}
	return all
}

// figure is one side of a change, with its place in the run.
type figure struct {
	Side
	analysis.FigureKey
	at              spot
	path, contender string
}

// wants says whether the metric is compared at the step. Unless metrics were chosen, one
// metric of each aspect is compared: the one with the least StandIn of those that a run
// has at the step, which has tells. Steps in excludedSteps are not compared.
func (p *pairing) wants(step, metric string, has func(step, metric string) bool) bool {
	if len(p.opt.Steps) > 0 && !slices.Contains(p.opt.Steps, step) || p.excludedSteps[step] {
		return false
	}
	if len(p.opt.Metrics) > 0 {
		return slices.Contains(p.opt.Metrics, metric) || slices.Contains(p.opt.Metrics, "all")
	}
	row, _ := result.LookupMetric(metric)
	return row.Aspect != 0 && !slices.ContainsFunc(result.Metrics(), func(m result.Metric) bool {
		return m.Aspect == row.Aspect && m.StandIn < row.StandIn && has(step, m.Name)
	})
}

// figures returns the figures of a run that can be compared, in the report's order: metrics
// that were chosen by name, and ranked metrics.
func (p *pairing) figures(e *analysis.Evidence) (all []figure) {
	for _, at := range e.Keys {
		s, contenders := p.spotOf(at), e.Figures[at]
		ranked := e.SelectRankable(at, contenders)
		named := slices.Contains(p.opt.Metrics, at.Metric)
		for _, contender := range e.OrderContenders(contenders) {
			if len(p.opt.Contenders) > 0 && !slices.Contains(p.opt.Contenders, contender) {
				continue
			}
			_, isRanked := ranked[contender]
			_, pooled := e.Percentiles[at][contender]
			if !named && !isRanked && !(pooled && at.Row().Has(result.Ranked)) || e.Lossy(at, contender) {
				continue
			}
			if side, ok := p.finiteSide(e, at, contender); ok {
				all = append(all, figure{side, at, s, e.Paths[at.Step], contender})
			}
		}
	}
	return all
}

// repeated says whether a side has several runs.
func (p *pairing) repeated() bool { return len(p.repeatsOld)+len(p.repeatsNew) > 0 }

// sideFigures returns the figures of each run of a side, and the figures of the side: all
// that any of its runs has. If runs are repeated, the values of a figure of the side are the
// figures of its runs.
func (p *pairing) sideFigures(runs []*analysis.Evidence) (byRun []bySpot, side []figure) {
	for _, e := range runs {
		figures := p.figures(e)
		before := index(side)
		for _, f := range figures {
			if _, found := before[f.at][f.contender]; !found {
				side = append(side, f)
			}
		}
		byRun = append(byRun, index(figures))
	}
	if !p.repeated() {
		return byRun, side
	}
	for i, f := range side {
		var values []float64
		for _, figures := range byRun {
			if own, found := figures[f.at][f.contender]; found {
				values = append(values, own.Median)
			}
		}
		side[i].Side = Side{stat.Median(values), values}
	}
	return byRun, side
}

// finiteSide is sideOfRun, but ok is false if a number is not finite.
func (p *pairing) finiteSide(e *analysis.Evidence, at analysis.FigureKey, contender string) (s Side, ok bool) {
	s, ok = p.sideOfRun(e, at, contender)
	bad := func(v float64) bool { return finite(v) == nil }
	return s, ok && !bad(s.Median) && !slices.ContainsFunc(s.Values, bad)
}

// sideOfRun returns the figure of one run or, with Options.VsBaseline, its ratio to the
// run's baseline. ok is false if there is no ratio.
func (p *pairing) sideOfRun(e *analysis.Evidence, at analysis.FigureKey, contender string) (s Side, ok bool) {
	values := e.Figures[at][contender]
	if !p.opt.VsBaseline {
		return Side{e.Headline(at, contender), append([]float64{}, values.Values()...)}, true
	}
	if contender == e.Run.Baseline {
		return Side{}, false
	}
	c := e.Compare(at, contender)
	if c == nil {
		return Side{}, false
	}
	// Not e.Ratios: in an unpaired run those are all pairs of rounds, which are no independent values.
	ratios, _ := stat.Ratios(values, e.Figures[e.BaseOf(at)][e.Run.Baseline])
	return Side{c.Ratio, append([]float64{}, ratios...)}, true
}

// pair sets p.changes, without their verdicts, and p.missing.
func (p *pairing) pair() {
	p.leaveOut()
	oldRuns, oldFigures := p.sideFigures(p.runsOf("old"))
	newRuns, newFigures := p.sideFigures(p.runsOf("new"))
	old, now := index(oldFigures), index(newFigures)
	has := func(step, metric string) bool {
		for _, figures := range []bySpot{old, now} {
			for s := range figures {
				if s.step == step && s.metric == metric {
					return true
				}
			}
		}
		return false
	}
	p.changes = []Change{}
	var ofOld, ofNew []figure // what each run of the side is expected to have
	for _, f := range newFigures {
		if !p.wants(f.Step, f.Metric, has) {
			continue
		}
		if before, both := old[f.at][f.contender]; both {
			p.changes = append(p.changes, p.change(before, f))
		} else {
			ofOld = append(ofOld, f)
		}
	}
	for _, f := range oldFigures {
		if p.wants(f.Step, f.Metric, has) {
			ofOld, ofNew = append(ofOld, f), append(ofNew, f)
		}
	}
	p.missing = []Missing{}
	for i, have := range newRuns {
		p.addMissing("new", i, ofNew, have)
	}
	for i, have := range oldRuns {
		p.addMissing("old", i, ofOld, have)
	}
}

func (p *pairing) change(old, now figure) Change {
	metric, _ := result.LookupMetric(now.Metric)
	if p.opt.VsBaseline {
		metric.Unit = "1"
	}
	return Change{
		Contender: now.contender, Kernel: now.Kernel, Underlay: now.Underlay, Step: now.Step, Path: now.path,
		Metric: now.Metric, Unit: metric.Unit, Better: metric.Better, Old: old.Side, New: now.Side,
	}
}

// addMissing adds the expected figures that run i of a side lacks to p.missing: a single entry
// if the run has no compared figure of a contender at a step, else an entry for each metric.
func (p *pairing) addMissing(from string, i int, expected []figure, have bySpot) {
	var list []Missing
	e, name := p.runsOf(from)[i], p.runName(from, i)
	for _, f := range expected {
		if _, found := have[f.at][f.contender]; found {
			continue
		}
		m := Missing{Contender: f.contender, Underlay: f.Underlay, Step: f.Step, Metric: f.Metric, From: from}
		some := false
		for other, contenders := range have {
			_, found := contenders[f.contender]
			some = some || found && other.kernel == f.at.kernel && other.underlay == f.at.underlay && other.step == f.at.step
		}
		if !some {
			m.Metric = ""
		}
		j := slices.IndexFunc(e.Run.Plan.Contenders, func(entry result.Entry) bool {
			return entry.ID == f.contender && p.spotOf(analysis.FigureKey{ComparableSet: analysis.ComparableSet{Underlay: entry.Underlay}}).underlay == f.at.underlay
		})
		planned := j >= 0 && e.Run.Plan.Takes(f.contender, f.Step) &&
			(f.Step == result.SetupStep || slices.ContainsFunc(e.Run.Plan.Steps, func(step result.Step) bool { return step.ID == f.Step }))
		m.Text = "not in " + name + "'s plan"
		if planned {
			m.Text = name + " has no valid sample with a figure that can be compared" + because(e, e.Run.Plan.Contenders[j], f.Step)
			m.Failed = from == "new" && p.opt.FailOn != nil
		}
		if !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(a, b Missing) int {
		return strings.Compare(strings.Join([]string{a.Contender, a.Underlay, a.Step, a.Metric}, "\x00"), strings.Join([]string{b.Contender, b.Underlay, b.Step, b.Metric}, "\x00"))
	})
	p.missing = append(p.missing, list...)
}

// because returns the codes for which samples of a contender at a step are invalid or
// spoiled, as the end of a sentence.
func because(e *analysis.Evidence, entry result.Entry, step string) string {
	count := map[string]int{}
	for i := range e.Samples {
		s := &e.Samples[i]
		if s.Contender != entry.ID || s.Step != step || s.Underlay != entry.Underlay {
			continue
		}
		for _, r := range s.Reasons {
			count[r.Code]++
		}
		for _, clock := range s.DroppedClocks[:min(1, len(s.DroppedClocks))] { // all clocks have the same reasons
			for _, r := range clock.Reasons {
				count[r.Code]++
			}
		}
	}
	var codes []string
	for _, code := range analysis.SortedKeys(count) {
		codes = append(codes, fmt.Sprintf("%s (%d)", code, count[code]))
	}
	if len(codes) == 0 {
		return "; its report says more"
	}
	return ": " + analysis.AndList(codes)
}

// check returns a *SelectionError if no run has something that was chosen.
func (p *pairing) check() error {
	metrics, steps, contenders := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, e := range slices.Concat(p.runsOf("old"), p.runsOf("new")) {
		for at, figures := range e.Figures {
			metrics[at.Metric], steps[at.Step] = true, true
			for c := range figures {
				contenders[c] = true
			}
		}
		for _, step := range e.Run.Plan.Steps {
			steps[step.ID] = true
		}
		for _, c := range e.Run.Plan.Contenders {
			contenders[c.ID] = true
		}
	}
	for _, chosen := range []struct {
		what  string
		names []string
		have  map[string]bool
	}{{"metric", p.opt.Metrics, metrics}, {"step", p.opt.Steps, steps}, {"contender", p.opt.Contenders, contenders}} {
		for _, name := range chosen.names {
			if !chosen.have[name] && !(chosen.what == "metric" && name == "all") {
				return &SelectionError{chosen.what, name, slices.Sorted(maps.Keys(chosen.have))}
			}
		}
	}
	return nil
}

// offers says, as a part of an error, of which contenders and steps a run has valid samples.
func offers(e *analysis.Evidence, name string) string {
	contenders, steps := map[string]bool{}, map[string]bool{}
	for _, s := range e.Valid {
		contenders[s.Contender], steps[s.Step] = true, true
	}
	if len(contenders) == 0 {
		return "the " + name + " run has no valid sample"
	}
	return fmt.Sprintf("the %s run has %s at %s", name, analysis.AndList(analysis.SortedKeys(contenders)), analysis.AndList(analysis.SortedKeys(steps)))
}
