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

// SelectionError says that a run has nothing of what was chosen.
type SelectionError struct {
	What, Name string   // "metric", "step", "contender"; "" where nothing at all is in common
	Have       []string // what there is instead
}

func (e *SelectionError) Error() string {
	if e.What == "" {
		return "the runs have no figure in common: " + strings.Join(e.Have, "; ")
	}
	return fmt.Sprintf("%s %s: neither run has it; they have %s", e.What, e.Name, strings.Join(e.Have, ", "))
}

// pairing is a comparison in the making.
type pairing struct {
	part        string // that it is of, as of a Result
	environment []string
	opt         Options
	old, now    *analysis.Evidence
	moreOld     []*analysis.Evidence // repeated runs of either side
	moreNew     []*analysis.Evidence
	changes     []Change
	missing     []Missing
	leftOut     map[string]bool // steps that are not compared, for their rates
	whyLeftOut  []string
}

// spotOf is where a figure is found in both runs. Kernels are told apart only
// where a run has several: comparing two kernels is what some runs are for. So are the
// underlays of two arenas, which have names of their own.
type spotOf struct{ kernel, underlay, step, metric string }

func (p *pairing) spot(at analysis.Place) spotOf {
	s := spotOf{at.Kernel, at.Underlay, at.Step, at.Metric}
	if p.oneOf(func(g analysis.Group) string { return g.Kernel }) {
		s.kernel = ""
	}
	if p.old.Run.Arena != p.now.Run.Arena && p.oneOf(func(g analysis.Group) string { return g.Underlay }) {
		s.underlay = ""
	}
	return s
}

// oneOf says that the groups of either run have one of what is asked for.
func (p *pairing) oneOf(what func(analysis.Group) string) bool {
	for _, e := range []*analysis.Evidence{p.old, p.now} {
		if slices.ContainsFunc(e.Groups, func(g analysis.Group) bool { return what(g) != what(e.Groups[0]) }) {
			return false
		}
	}
	return true
}

// figureOf is one side of a change with where it was found.
type figureOf struct {
	Side
	analysis.Place
	path, contender string
}

// wants says that the metric is compared at the step; has tells what either
// run has at a step. Unless metrics are asked for, one of each aspect is
// compared: that of the least StandIn which either run has at the step. A step that
// the runs loaded at different rates is not compared.
func (p *pairing) wants(step, metric string, has func(step, metric string) bool) bool {
	if len(p.opt.Steps) > 0 && !slices.Contains(p.opt.Steps, step) || p.leftOut[step] {
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

// figures are those of a run that can be compared. Metrics that were asked for by
// name are taken as they are, others where they are a contender's merit.
func (p *pairing) figures(e *analysis.Evidence) map[spotOf]map[string]figureOf {
	all := map[spotOf]map[string]figureOf{}
	for _, at := range e.Places {
		contenders := e.Figures[at]
		ranked := e.Ranked(at, contenders)
		named := slices.Contains(p.opt.Metrics, at.Metric)
		for _, contender := range e.Ordered(contenders) {
			if len(p.opt.Contenders) > 0 && !slices.Contains(p.opt.Contenders, contender) {
				continue
			}
			_, isRanked := ranked[contender]
			_, pooled := e.Percentiles[at][contender]
			if !named && !isRanked && !(pooled && at.Row().Has(result.Ranked)) || e.Lossy(at, contender) {
				continue
			}
			side, ok := p.side(e, at, contender)
			if !ok {
				continue
			}
			s := p.spot(at)
			if all[s] == nil {
				all[s] = map[string]figureOf{}
			}
			all[s][contender] = figureOf{side, at, e.Paths[at.Step], contender}
		}
	}
	return all
}

// repeated says that there are several runs on a side.
func (p *pairing) repeated() bool { return len(p.moreOld)+len(p.moreNew) > 0 }

// side is the figure of one side. Of repeated runs the values are the runs' figures.
func (p *pairing) side(e *analysis.Evidence, at analysis.Place, contender string) (Side, bool) {
	first, ok := p.oneSide(e, at, contender)
	if !ok || !p.repeated() {
		return first, ok
	}
	more := p.moreNew
	if e == p.old {
		more = p.moreOld
	}
	values := []float64{first.Median}
	for _, other := range more {
		if len(other.Figures[at][contender]) == 0 {
			continue // this run has no such figure
		}
		if s, ok := p.oneSide(other, at, contender); ok {
			values = append(values, s.Median)
		}
	}
	return Side{stat.Median(values), values}, true
}

// oneSide is a run's figure: its own, or its ratio to the run's baseline; not ok
// where that is no finite number.
func (p *pairing) oneSide(e *analysis.Evidence, at analysis.Place, contender string) (Side, bool) {
	s, ok := p.sideOf(e, at, contender)
	bad := func(v float64) bool { return finite(v) == nil }
	return s, ok && !bad(s.Median) && !slices.ContainsFunc(s.Values, bad)
}

func (p *pairing) sideOf(e *analysis.Evidence, at analysis.Place, contender string) (Side, bool) {
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
	ratios, _ := stat.Ratios(values, e.Figures[at][e.Run.Baseline])
	return Side{c.Ratio, append([]float64{}, ratios...)}, true
}

// pair fills in the changes, without judgement, and what is missing.
func (p *pairing) pair() {
	p.leaveOut()
	old, now := p.figures(p.old), p.figures(p.now)
	has := func(step, metric string) bool {
		for _, figures := range []map[spotOf]map[string]figureOf{old, now} {
			for s := range figures {
				if s.step == step && s.metric == metric {
					return true
				}
			}
		}
		return false
	}
	p.changes = []Change{}
	lacks := map[string]map[spotOf][]figureOf{}
	for _, side := range []struct {
		e      *analysis.Evidence
		mine   map[spotOf]map[string]figureOf
		theirs map[spotOf]map[string]figureOf
		from   string
	}{{p.now, now, old, "old"}, {p.old, old, now, "new"}} {
		lacks[side.from] = map[spotOf][]figureOf{}
		for _, at := range side.e.Places {
			s := p.spot(at)
			if !p.wants(s.step, s.metric, has) {
				continue
			}
			for _, contender := range side.e.Ordered(side.e.Figures[at]) {
				mine, ok := side.mine[s][contender]
				if !ok || mine.Place != at {
					continue
				}
				theirs, both := side.theirs[s][contender]
				switch {
				case !both:
					lacks[side.from][s] = append(lacks[side.from][s], mine)
				case side.from == "old":
					p.changes = append(p.changes, p.change(theirs, mine))
				}
			}
		}
	}
	p.miss("new", p.now, lacks["new"], now)
	p.miss("old", p.old, lacks["old"], old)
}

func (p *pairing) change(old, now figureOf) Change {
	metric, _ := result.LookupMetric(now.Metric)
	if p.opt.VsBaseline {
		metric.Unit = "1"
	}
	return Change{
		Contender: now.contender, Kernel: now.Kernel, Underlay: now.Underlay, Step: now.Step, Path: now.path,
		Metric: now.Metric, Unit: metric.Unit, Better: metric.Better, Old: old.Side, New: now.Side,
	}
}

// miss notes what a run lacks: once for a step where it has nothing of a
// contender that is compared, else by metric.
func (p *pairing) miss(from string, e *analysis.Evidence, lacks map[spotOf][]figureOf, have map[spotOf]map[string]figureOf) {
	var list []Missing
	for s, figures := range lacks {
		for _, f := range figures {
			m := Missing{Contender: f.contender, Underlay: f.Underlay, Step: f.Step, Metric: f.Metric, From: from}
			some := false
			for other, contenders := range have {
				_, there := contenders[f.contender]
				some = some || there && other.kernel == s.kernel && other.underlay == s.underlay && other.step == s.step
			}
			if !some {
				m.Metric = ""
			}
			planned := slices.Contains(e.Run.Plan.Contenders, result.Entry{ID: f.contender, Underlay: f.Underlay}) &&
				(f.Step == result.SetupStep || slices.ContainsFunc(e.Run.Plan.Steps, func(step result.Step) bool { return step.ID == f.Step }))
			m.Text = "not in the " + from + " run's plan"
			if planned {
				m.Text = "the " + from + " run has no valid sample with a figure that can be compared" + because(e, f)
				m.Failed = from == "new" && p.opt.FailOn != nil
			}
			if !slices.Contains(list, m) {
				list = append(list, m)
			}
		}
	}
	slices.SortFunc(list, func(a, b Missing) int {
		return strings.Compare(strings.Join([]string{a.Contender, a.Underlay, a.Step, a.Metric}, "\x00"), strings.Join([]string{b.Contender, b.Underlay, b.Step, b.Metric}, "\x00"))
	})
	p.missing = append(p.missing, list...)
	if p.missing == nil {
		p.missing = []Missing{}
	}
}

// because says why a contender's samples at a step are not valid, if any is not.
func because(e *analysis.Evidence, f figureOf) string {
	count := map[string]int{}
	for i := range e.Samples {
		s := &e.Samples[i]
		if s.Contender != f.contender || s.Step != f.Step || s.Underlay != f.Underlay {
			continue
		}
		for _, r := range s.Reasons {
			count[r.Code]++
		}
		for _, clock := range s.Spoiled[:min(1, len(s.Spoiled))] { // every clock has the same
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

// check refuses choices that neither run has.
func check(opt Options, pairs []*pairing) error {
	metrics, steps, contenders := map[string]bool{}, map[string]bool{}, map[string]bool{}
	var all []*analysis.Evidence
	for _, p := range pairs {
		all = append(all, p.old, p.now)
	}
	for _, e := range all {
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
	}{{"metric", opt.Metrics, metrics}, {"step", opt.Steps, steps}, {"contender", opt.Contenders, contenders}} {
		for _, name := range chosen.names {
			if !chosen.have[name] && !(chosen.what == "metric" && name == "all") {
				return &SelectionError{chosen.what, name, slices.Sorted(maps.Keys(chosen.have))}
			}
		}
	}
	return nil
}

// offers says in a few words what a run has valid samples of.
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
