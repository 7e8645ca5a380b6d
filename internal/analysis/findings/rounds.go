package findings

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/unit"
)

// This file has the rules that compare the rounds of valid samples with each other.

const (
	minApart      = 1.1  // upper group's median divided by the lower group's
	maxCeiling    = 1.02 // of the goodput that line rate and headers allow
	clockSlack    = 0.05 // s
	coarseFrom    = 0.10 // smallest detectable difference, relative
	maxContenders = 3    // contenders that one finding names
	splitRounds   = 6    // fewest rounds in which two groups can be found
)

// missingFigure finds figures that most contenders have at a step, but not one of the
// contenders with valid samples.
func missingFigure(e *evidence) []analysis.Finding {
	has := map[analysis.FigureKey]map[string]bool{} // contenders with a valid sample, by group and step
	type clockOf struct {
		analysis.ComparableSet
		step, contender, clock string
	}
	spoiledClock := map[clockOf]bool{} // the finding spoiled_clock explains why these have no figure
	for _, s := range e.Valid {
		for _, spoiled := range s.DroppedClocks {
			spoiledClock[clockOf{analysis.SetOf(s), s.Step, s.Contender, spoiled.Clock}] = true
		}
		at := analysis.FigureKey{ComparableSet: analysis.SetOf(s), Step: s.Step, Metric: ""}
		if has[at] == nil {
			has[at] = map[string]bool{}
		}
		has[at][s.Contender] = true
	}
	var list []analysis.Finding
	for _, at := range e.Keys {
		all := has[at.With("")]
		if !at.Row().Has(result.Expected) || 2*len(e.Figures[at]) <= len(all) {
			continue
		}
		for _, c := range slices.SortedFunc(maps.Keys(all), e.CompareContenders) {
			if len(e.Figures[at][c]) == 0 && !spoiledClock[clockOf{at.ComparableSet, at.Step, c, at.Row().Clock}] {
				list = append(list, analysis.Finding{Contender: c, Step: at.Step, Text: fmt.Sprintf(
					"%sno %s, although there are valid samples and %d of %d contenders have it", e.GroupPrefix(at.ComparableSet), at.Metric, len(e.Figures[at]), len(all))})
			}
		}
	}
	return list
}

// aboveCeiling finds valid samples with more goodput than line rate and headers allow. A
// sample's verdict is less strict: it knows only the line rate, and takes the smallest
// headers of any protocol.
func aboveCeiling(e *evidence) []analysis.Finding {
	if e.Opt.LineRate <= 0 {
		return nil
	}
	var list []worstSample
	for _, s := range e.Valid {
		goodput, maximum := s.Metrics[result.Goodput], e.Ceiling(s.Contender, s.Step)
		if goodput > maxCeiling*maximum {
			list = gatherWorst(list, s, goodput, fmt.Sprintf("%s of %s", unit.Format(goodput, "bit/s"), unit.Format(maximum, "bit/s")))
		}
	}
	return toFindings(e, list, "goodput was above what the line rate, an MTU of "+fmt.Sprint(e.Opt.MTU)+" and the headers leave: at most %s")
}

// bimodalRounds finds figures whose rounds lie in two groups. Holm's correction over all
// figures with enough rounds keeps the chance of any false finding at alpha.
func bimodalRounds(e *evidence) []analysis.Finding {
	var tests []splitFigure
	var p, minimum []float64
	for _, at := range e.Keys {
		if !at.Row().Has(result.Steady) {
			continue
		}
		for _, c := range e.OrderContenders(e.Figures[at]) {
			values := logs(e.Figures[at][c].Values())
			s := e.Splits.Split(values)
			tests, p, minimum = append(tests, splitFigure{at, c, s}), append(p, s.P), append(minimum, stat.MinSplit(len(values)))
		}
	}
	found := map[analysis.FigureKey][]splitFigure{}
	for i, adjusted := range stat.HolmTestable(p, minimum, e.Opt.Alpha) {
		s := tests[i]
		if adjusted > e.Opt.Alpha || stat.Median(s.High)-stat.Median(s.Low) < math.Log(minApart) {
			continue
		}
		found[s.FigureKey] = append(found[s.FigureKey], s)
	}
	var list []analysis.Finding
	for _, at := range e.Keys {
		var parts []string
		for _, s := range found[at] {
			parts = append(parts, s.levels()+e.againstBaseline(s, found[at]))
		}
		if len(parts) == 0 {
			continue
		}
		f := analysis.Finding{Step: at.Step}
		if len(parts) == 1 {
			f.Contender = found[at][0].contender
		}
		if rest := len(parts) - maxContenders; rest > 0 {
			parts = append(parts[:maxContenders], "and "+unit.Plural(rest, "more contender"))
		}
		f.Text = fmt.Sprintf("%sthe rounds' %s lies in two groups: %s", e.GroupPrefix(at.ComparableSet), at.Metric, strings.Join(parts, "; "))
		list = append(list, f)
	}
	return list
}

// splitFigure is a figure whose rounds' logarithms may lie in two groups.
type splitFigure struct {
	analysis.FigureKey
	contender string
	stat.Split
}

// levels describes both groups with their numbers of rounds.
func (s *splitFigure) levels() string {
	metric := s.Row()
	return fmt.Sprintf("%s near %s in %s and near %s in %d", s.contender,
		unit.Format(math.Exp(stat.Median(s.Low)), metric.Unit), unit.Plural(len(s.Low), "round"),
		unit.Format(math.Exp(stat.Median(s.High)), metric.Unit), len(s.High))
}

// againstBaseline compares both levels with the baseline: with the baseline's levels if its
// rounds also lie in two groups, else with its median. It returns "" for the baseline.
func (e *evidence) againstBaseline(s splitFigure, found []splitFigure) string {
	base := logs(e.Figures[s.FigureKey][e.Run.Baseline].Values())
	if s.contender == e.Run.Baseline || len(base) == 0 {
		return ""
	}
	low, high, words := stat.Median(base), stat.Median(base), ""
	for _, b := range found {
		if b.contender == e.Run.Baseline {
			low, high, words = stat.Median(b.Low), stat.Median(b.High), "level with level "
		}
	}
	return fmt.Sprintf(" (%s%.2f× and %.2f× of %s)", words, math.Exp(stat.Median(s.Low)-low), math.Exp(stat.Median(s.High)-high), e.Run.Baseline)
}

// scatteredRounds finds figures whose rounds differ much, if there are too few rounds to
// find groups. The baseline has a finding of its own, unstable_baseline.
func scatteredRounds(e *evidence) []analysis.Finding {
	var list []analysis.Finding
	for _, at := range e.Keys {
		if !at.Row().Has(result.Steady) {
			continue
		}
		metric, _ := result.LookupMetric(at.Metric)
		var parts []string
		rounds := 0
		for _, c := range e.OrderContenders(e.Figures[at]) {
			values := e.Figures[at][c].Values()
			if c == e.Run.Baseline || len(values) < 2 || len(values) >= splitRounds || e.Lossy(at, c) {
				continue
			}
			if low, high := slices.Min(values), slices.Max(values); low > 0 && high/low > maxSpread {
				parts = append(parts, fmt.Sprintf("%s %s to %s (%.2f×)", c, unit.Format(low, metric.Unit), unit.Format(high, metric.Unit), high/low))
				rounds = max(rounds, len(values))
			}
		}
		if len(parts) == 0 {
			continue
		}
		if rest := len(parts) - maxContenders; rest > 0 {
			parts = append(parts[:maxContenders], fmt.Sprintf("and %s", unit.Plural(rest, "more contender")))
		}
		list = append(list, analysis.Finding{Step: at.Step, Text: fmt.Sprintf("%sthe %d rounds' %s lies far apart: %s", e.GroupPrefix(at.ComparableSet), rounds, at.Metric, strings.Join(parts, ", "))})
	}
	return list
}

// logs returns the values' logarithms, or nil if a value is not positive.
func logs(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		if v <= 0 {
			return nil
		}
		out[i] = math.Log(v)
	}
	return out
}

// clockStep compares samples that a contender took one after the other: no sample can
// begin before the previous one has ended. A clock that was set forward cannot be found,
// because it looks like a pause.
func clockStep(e *evidence) []analysis.Finding {
	count, maximum := 0, 0.0
	var where *result.Sample
	for i := 1; i < len(e.Samples); i++ {
		a, b := &e.Samples[i-1], &e.Samples[i]
		if b.Order != a.Order+1 || a.Contender != b.Contender || a.Round != b.Round || a.Underlay != b.Underlay || a.Started.IsZero() || b.Started.IsZero() {
			continue
		}
		if overlap := float64(a.Elapsed) - b.Started.Sub(a.Started).Seconds(); overlap > clockSlack {
			count++
			if overlap > maximum {
				maximum, where = overlap, b
			}
		}
	}
	if where == nil {
		return nil
	}
	return []analysis.Finding{{Contender: where.Contender, Step: where.Step, Round: where.Round, Text: fmt.Sprintf(
		"%s began before the one before it had ended, by %.3g s: the machine's clock was set back", unit.Plural(count, "sample"), maximum)}}
}

// coarseResolution lists the figures of which the rounds can't show a difference of
// coarseFrom to the baseline for a typical contender. Runs with too few rounds to show any
// difference have the finding of tooFewRounds.
func coarseResolution(e *evidence) []analysis.Finding {
	var coarse []string
	for _, at := range e.Keys {
		if !e.IsMainMetric(at) && at.Row().Aspect != result.Cost {
			continue
		}
		var shown []float64
		for _, r := range e.Results {
			if r.FigureKey() == at && r.Contender != e.Run.Baseline && r.Ranked && r.MDD != nil {
				shown = append(shown, *r.MDD)
			}
		}
		if typical := stat.Median(shown); typical >= coarseFrom {
			coarse = append(coarse, e.GroupPrefix(at.ComparableSet)+at.Step+" "+at.Metric+" "+unit.FormatPercent(typical))
		}
	}
	if len(coarse) == 0 {
		return nil
	}
	text := fmt.Sprintf("differences of a typical contender to %s that these rounds would miss in one of five runs: up to %s", e.Run.Baseline, joinShort(coarse))
	if w := e.AdviseRounds(); w != nil {
		text += "; " + w.Text()
	}
	return []analysis.Finding{{Severity: analysis.Info, Text: text}}
}

// joinShort joins at most maxListed parts, and says how many more there are.
func joinShort(parts []string) string { return strings.Join(text.Shorten(parts, maxListed), "; ") }
