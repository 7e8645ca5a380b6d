package findings

import (
	"fmt"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// This file has the rules that look at the figures of valid samples.

const (
	minDrift      = 0.02 // of the figure, over all rounds
	maxQuietSteal = 0.02 // of the busy CPU time
	maxIdleCPU    = 0.25 // CPUs busy, both nodes, when nothing is measured
	maxSpread     = 1.3  // the baseline's largest round divided by its smallest
	maxSpreadFew  = 1.1  // the same with too few rounds for an interval
	maxLag        = 0.5  // of the latency at the same percentile
	minBetter     = 0.02 // above the baseline, if there is an interval
	minBetterBare = 0.05 // above the baseline in every round, if there is no interval
	minBareRounds = 3    // without an interval
	nearLineRate  = 0.95 // of the goodput ceiling
	nearMaxRate   = 0.9  // of the step's bandwidth limit: on a busy machine the kernel paces to some per cent less
)

// isHeadline says whether the place's metric represents its step. CPU by request does not
// if the kernel sampled CPU time in phase with the load.
func isHeadline(e *evidence, at analysis.FigureKey) bool {
	return at.Row().Has(result.Headline) && !(at.Row().Per == result.Rate && e.Aliased(at.Step))
}

func udpLoss(e *evidence) []analysis.Finding {
	var list []analysis.Finding
	for _, r := range e.Results {
		if r.Metric == result.Loss && r.Median > analysis.MaxLoss {
			text := fmt.Sprintf("%s%s of the datagrams were lost", e.GroupPrefix(analysis.ComparableSet{Kernel: r.Kernel, Underlay: r.Underlay}), unit.FormatPercent(r.Median))
			if r.Contender == e.Run.Baseline {
				text += ": there are no ratios to it"
			}
			list = append(list, analysis.Finding{Contender: r.Contender, Step: r.Step, Text: text, Excluded: true})
		}
	}
	return list
}

// drift tests steps and not single contenders. Contenders are made anew in every round, so
// a drift is the machine's, and affects all contenders.
func drift(e *evidence) []analysis.Finding {
	type tested struct {
		analysis.FigureKey
		stat.Drift
		change float64 // over all rounds, relative
		rounds int
	}
	var tests []tested
	var p, minimum []float64
	for _, at := range e.Keys {
		if !isHeadline(e, at) {
			continue
		}
		index := poolRounds(e.Figures[at])
		d := stat.Trend(index)
		tests = append(tests, tested{at, d, d.Slope * float64(len(index)-1), len(index)})
		p, minimum = append(p, d.P), append(minimum, stat.MinTrend(len(index)))
	}
	var list []analysis.Finding
	for i, adjusted := range stat.HolmTestable(p, minimum, e.Opt.Alpha) {
		t := tests[i]
		if adjusted <= e.Opt.Alpha && max(t.change, -t.change) >= minDrift {
			list = append(list, analysis.Finding{Step: t.Step, Text: fmt.Sprintf("%s%s moved by %+.1f %% over %d rounds (p = %.2g)",
				e.GroupPrefix(t.ComparableSet), t.Metric, 100*t.change, t.rounds, t.P)})
		}
	}
	return list
}

// poolRounds divides each contender's values by the contender's median, and returns the median
// over contenders for every round in which most contenders have a value.
func poolRounds(contenders map[string]analysis.Series) []float64 {
	byRound := map[int][]float64{}
	for _, s := range contenders {
		median := stat.Median(s.Values())
		if median <= 0 {
			continue
		}
		for round, v := range s {
			byRound[round] = append(byRound[round], v/median)
		}
	}
	var index []float64
	for _, round := range analysis.SortedKeys(byRound) {
		if 2*len(byRound[round]) > len(contenders) {
			index = append(index, stat.Median(byRound[round]))
		}
	}
	return index
}

// maxSpreadOf returns the largest accepted spread of the baseline's rounds. It is smaller
// with too few rounds for an interval, because then nothing else shows the uncertainty.
func maxSpreadOf(e *evidence, rounds int) float64 {
	if rounds < stat.NeedsForInterval(e.Opt.Confidence) {
		return maxSpreadFew
	}
	return maxSpread
}

func unstableBaseline(e *evidence) []analysis.Finding {
	var list []analysis.Finding
	for _, at := range e.Keys {
		values := e.Figures[at][e.Run.Baseline].Values()
		if !e.IsMainMetric(at) || len(values) == 0 {
			continue
		}
		low, high := slices.Min(values), slices.Max(values)
		if low <= 0 || high/low <= maxSpreadOf(e, len(values)) {
			continue
		}
		metric, _ := result.LookupMetric(at.Metric)
		list = append(list, analysis.Finding{Contender: e.Run.Baseline, Step: at.Step, Text: fmt.Sprintf(
			"%s%s of the baseline was between %s and %s (%.2f×) in %s", e.GroupPrefix(at.ComparableSet),
			at.Metric, unit.Format(low, metric.Unit), unit.Format(high, metric.Unit), high/low, unit.Plural(len(values), "round"))})
	}
	return list
}

func stealPresent(e *evidence) []analysis.Finding {
	count, maximum := 0, 0.0
	var worst *result.Sample
	for _, s := range e.Valid {
		stolen := s.Metrics[result.CPUClientSteal] + s.Metrics[result.CPUServerSteal]
		worked, known := s.Metrics[result.CPUClient] // unknown if both sides had the same CPUs
		busy := worked + s.Metrics[result.CPUServer] + stolen
		if !known || busy <= 0 || stolen/busy < maxQuietSteal {
			continue
		}
		count++
		if share := stolen / busy; share > maximum {
			maximum, worst = share, s
		}
	}
	if worst == nil {
		return nil
	}
	return []analysis.Finding{{Text: fmt.Sprintf("in %s of %d the hypervisor took %s or more of the busy CPU time, at most %s (%s, %s, round %d)",
		unit.Plural(count, "valid sample"), len(e.Valid), unit.FormatPercent(maxQuietSteal), unit.FormatPercent(maximum), worst.Contender, worst.Step, worst.Round)}}
}

func busyMachine(e *evidence) []analysis.Finding {
	var list []analysis.Finding
	for _, g := range e.Sets {
		for _, step := range e.Run.Plan.Steps {
			if step.Workload != analysis.Idle {
				continue
			}
			busy := func(metric string) float64 {
				s := e.Figures[analysis.FigureKey{ComparableSet: g, Step: step.ID, Metric: metric}][e.Run.Baseline]
				if len(s) == 0 {
					return 0
				}
				return stat.Median(s.Values())
			}
			if cpu := busy(result.CPUClient) + busy(result.CPUServer); cpu >= maxIdleCPU {
				list = append(list, analysis.Finding{Contender: e.Run.Baseline, Step: step.ID,
					Text: fmt.Sprintf("%sthe nodes were busy with %s when nothing was measured", e.GroupPrefix(g), unit.Format(cpu, "CPU-s/s"))})
			}
		}
	}
	return list
}

func betterThanBaseline(e *evidence) []analysis.Finding {
	found := map[findingKey]*analysis.Finding{}
	var order []findingKey
	for _, r := range e.Results {
		g := analysis.ComparableSet{Kernel: r.Kernel, Underlay: r.Underlay}
		if r.VsBaseline == nil || r.VsBaseline.Step != "" || !r.Ranked || !isHeadline(e, analysis.FigureKey{ComparableSet: g, Step: r.Step, Metric: r.Metric}) {
			continue
		}
		ratios, _ := e.Ratios(analysis.FigureKey{ComparableSet: g, Step: r.Step, Metric: r.Metric}, r.Contender)
		text, sure := better(r, ratios)
		if text == "" {
			continue
		}
		at := findingKey{g, r.Contender, r.Step, ""}
		if found[at] == nil {
			order = append(order, at)
			found[at] = &analysis.Finding{Severity: analysis.Info, Contender: r.Contender, Step: r.Step, Text: e.GroupPrefix(g) + "better than " + e.Run.Baseline + ": " + text}
		} else {
			found[at].Text += "; " + text
		}
		if sure {
			found[at].Severity = analysis.Warn
		}
	}
	var list []analysis.Finding
	for _, at := range order {
		list = append(list, *found[at])
	}
	return list
}

// better says in words by how much a result is better than the baseline, or returns "" if
// it is not. sure says whether the whole interval is better.
func better(r analysis.Result, ratios []float64) (text string, sure bool) {
	gain := func(ratio float64) float64 {
		if r.Better == "higher" {
			return ratio - 1
		}
		return 1 - ratio
	}
	c := r.VsBaseline
	if c.CI != nil {
		if gain(c.Ratio) < minBetter || gain(c.CI[0]) <= 0 || gain(c.CI[1]) <= 0 {
			return "", false
		}
		return fmt.Sprintf("%s %.3f× (%.3f to %.3f)", r.Metric, c.Ratio, c.CI[0], c.CI[1]), true
	}
	if r.N < minBareRounds || len(ratios) < minBareRounds {
		return "", false
	}
	for _, ratio := range ratios {
		if gain(ratio) < minBetterBare {
			return "", false
		}
	}
	return fmt.Sprintf("%s %.3f× (%.3f to %.3f in %d rounds, too few for an interval)",
		r.Metric, c.Ratio, slices.Min(ratios), slices.Max(ratios), min(r.N, len(ratios))), false
}

func lineRateLimited(e *evidence) []analysis.Finding {
	if e.Opt.LineRate <= 0 {
		return nil
	}
	near := func(contender, step string) float64 { return nearLineRate * e.Ceiling(contender, step) }
	list := goodputLimited(e, 2, near, func(string) string {
		return fmt.Sprintf("reach what a line rate of %v carries (%%s)", e.Opt.LineRate)
	})
	for i := range list {
		list[i].Severity = analysis.Info
	}
	return list
}

func maxRateLimited(e *evidence) []analysis.Finding {
	near := func(_, step string) float64 {
		if rate := e.Bandwidth(step); rate > 0 && !e.IsUDP(step) { // UDP at a rate asks for loss, not for goodput
			return nearMaxRate * rate
		}
		return math.Inf(1)
	}
	return goodputLimited(e, 1, near, func(step string) string {
		return fmt.Sprintf("reach the %v that the step may send (%%s)", unit.BitRate(e.Bandwidth(step)))
	})
}

// goodputLimited finds the steps at which the goodput of at least so many (least)
// contenders reaches near, in bit/s. words returns a format for the contenders' names.
func goodputLimited(e *evidence, minimum int, near func(contender, step string) float64, words func(step string) string) []analysis.Finding {
	var list []analysis.Finding
	for _, at := range e.Keys {
		if at.Metric != result.Goodput {
			continue
		}
		var full []string
		for _, c := range e.OrderContenders(e.Figures[at]) {
			if stat.Median(e.Figures[at][c].Values()) >= near(c, at.Step) {
				full = append(full, c)
			}
		}
		if len(full) >= minimum {
			list = append(list, analysis.Finding{Step: at.Step, Text: fmt.Sprintf("%s%d of %s "+words(at.Step),
				e.GroupPrefix(at.ComparableSet), len(full), unit.Plural(len(e.Figures[at]), "contender"), analysis.AndList(full))})
		}
	}
	return list
}
