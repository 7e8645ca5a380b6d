package findings

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// This file has the rules that look at the traces of a step's nodes, second by second.

const (
	leastSeries  = 8    // fewest intervals of a window for a test
	mostSeries   = 60   // more intervals are averaged to this number
	leastFlow    = 1e6  // bit/s; less is no load
	leastLevel   = 0.10 // smallest relative change of the level that is reported
	warmupShare  = 3    // a change within the first third of the window is due to a short warm-up
	stallShare   = 0.5  // of the median, in one interval
	burstShare   = 2.0  // of the median, in one interval
	longestPause = 2.5  // s between two snapshots
	fullCPU      = 0.95 // busy share of the busiest CPU
	idleOthers   = 0.50 // mean busy share of the others
)

// traced is a valid sample with its trace.
type traced struct {
	*result.Sample
	trace *analysis.Trace
}

// tracedSamples returns the valid samples of loaded steps that have a trace, ordered by
// step, contender and round. Samples that were measured in slices are left out, because
// their traces also contain the pauses.
func tracedSamples(e *analysis.Evidence) []traced {
	var list []traced
	for i := range e.Opt.Traces {
		t := &e.Opt.Traces[i]
		if s := e.ValidSample(t.Key); s != nil && s.Workload != analysis.Idle && s.Step != result.SetupStep && s.Slices == nil {
			list = append(list, traced{s, t})
		}
	}
	slices.SortStableFunc(list, func(a, b traced) int {
		return cmp.Or(e.CompareSteps(a.Step, b.Step), e.CompareContenders(a.Contender, b.Contender),
			cmp.Compare(a.Underlay, b.Underlay), cmp.Compare(a.Round, b.Round))
	})
	return list
}

// flow returns the rate at the node that received most, averaged to at most mostSeries
// values, and the length of the interval of one value in seconds.
func flow(t *analysis.Trace) (series []float64, each float64) {
	node := busiestReceiver(t)
	if node == nil {
		return nil, 0
	}
	series = analysis.FiniteOnly(node.Within(node.Receive))
	each = node.Window / float64(len(series))
	join := (len(series) + mostSeries - 1) / mostSeries
	if join < 2 {
		return series, each
	}
	var joined []float64
	for part := range slices.Chunk(series, join) {
		joined = append(joined, stat.Mean(part))
	}
	return joined, each * float64(join)
}

// worstSample gathers the samples of a spot. It becomes one finding, with the text of the
// worst sample.
type worstSample struct {
	spot
	rounds []int
	worst  float64
	text   string
}

// gatherWorst adds a sample to the list. A larger value of worst is worse.
func gatherWorst(list []worstSample, s *result.Sample, worst float64, text string) []worstSample {
	at := spotOf(s, "")
	i := slices.IndexFunc(list, func(o worstSample) bool { return o.spot == at })
	if i < 0 {
		return append(list, worstSample{at, []int{s.Round}, worst, text})
	}
	list[i].rounds = append(list[i].rounds, s.Round)
	if worst > list[i].worst {
		list[i].worst, list[i].text = worst, text
	}
	return list
}

// worded makes findings of the list. Their texts are "in rounds 1 and 3 of 6 ", followed by
// format with the text of the worst sample.
func worded(e *evidence, list []worstSample, format string) []analysis.Finding {
	var out []analysis.Finding
	for _, g := range list {
		f := analysis.Finding{Contender: g.Contender, Step: g.Step,
			Text: fmt.Sprintf("%sin %s of %d "+format, e.GroupPrefix(g.Group), analysis.RoundsText(g.rounds), e.Rounds(), g.text)}
		if len(g.rounds) == 1 {
			f.Round = g.rounds[0]
		}
		out = append(out, f)
	}
	return out
}

// levelChange is a significant change of a sample's rate.
type levelChange struct {
	traced
	at, change float64 // s from the begin of the window; relative
	early      bool    // a longer warm-up would have contained the change
}

// changesOfLevel returns the changes of level of all samples, with Holm's correction over
// the samples of a step.
func changesOfLevel(e *analysis.Evidence, all []traced) []levelChange {
	byStep := map[string][]levelChange{}
	p := map[string][]float64{}
	for _, t := range all {
		series, each := flow(t.trace)
		if len(series) < leastSeries || stat.Median(series) < leastFlow {
			continue
		}
		c := e.Changes.Change(series)
		found := levelChange{traced: t}
		if c.At > 0 {
			found.at = float64(c.At) * each
			found.change = stat.Median(series[c.At:])/stat.Median(series[:c.At]) - 1
			found.early = c.At*warmupShare <= len(series)
		}
		byStep[t.Step] = append(byStep[t.Step], found)
		p[t.Step] = append(p[t.Step], c.P)
	}
	var list []levelChange
	for _, step := range slices.SortedFunc(maps.Keys(byStep), e.CompareSteps) {
		for i, adjusted := range stat.Holm(p[step]) {
			if l := byStep[step][i]; adjusted <= e.Opt.Alpha && math.Abs(l.change) >= leastLevel {
				list = append(list, l)
			}
		}
	}
	return list
}

func levelFindings(e *evidence, early bool) []analysis.Finding {
	var list []worstSample
	for _, l := range e.levels {
		if l.early == early {
			list = gatherWorst(list, l.Sample, math.Abs(l.change),
				fmt.Sprintf("%+.0f %% after %.0f s of %.0f", 100*l.change, l.at, float64(l.Elapsed)))
		}
	}
	return worded(e, list, "the received rate went to another level, at most by %s")
}

func warmupNotOver(e *evidence) []analysis.Finding {
	return append(levelFindings(e, true), pooledChanges(e, true)...)
}

func levelStep(e *evidence) []analysis.Finding {
	return slices.Concat(levelFindings(e, false), pooledChanges(e, false), steppingContenders(e))
}

// burstySeries finds single intervals whose rate is far from the median. Samples with a
// change of level are left out, because their median is no measure.
func burstySeries(e *evidence) []analysis.Finding {
	var list []worstSample
	for _, t := range e.traced {
		series, each := flow(t.trace)
		median := stat.Median(series)
		changed := slices.ContainsFunc(e.levels, func(l levelChange) bool { return l.Sample == t.Sample })
		if len(series) < leastSeries || median < leastFlow || changed {
			continue
		}
		off, worst, at := 0, 1.0, 0
		for i, v := range series {
			if v > stallShare*median && v < burstShare*median {
				continue
			}
			off++
			if far := max(v/median, median/max(v, 1)); far > worst {
				worst, at = far, i
			}
		}
		if off > 0 {
			list = gatherWorst(list, t.Sample, worst, fmt.Sprintf("%s after %.0f s, of a median of %s (%s off)",
				unit.Format(series[at], "bit/s"), float64(at)*each, unit.Format(median, "bit/s"), unit.Plural(off, "interval")))
		}
	}
	return worded(e, list, "single seconds were under half or over twice the usual rate: %s")
}

func emptySeries(e *evidence) []analysis.Finding {
	var list []worstSample
	for _, t := range e.traced {
		if t.Elapsed > 0 && t.Elapsed < 2 {
			continue // such a short recording has only the marks of begin and end
		}
		for i := range t.trace.Nodes {
			node := &t.trace.Nodes[i]
			intervals := node.Within(node.Times)
			text := ""
			switch received := analysis.FiniteOnly(node.Within(node.Receive)); {
			case len(intervals) == 0:
				text = "nothing of the measured window"
			case t.Metrics[result.Goodput] > leastFlow && len(received) > 0 && slices.Max(received) == 0 && node.Node == "server":
				text = "no byte received, beside a goodput of " + unit.Format(t.Metrics[result.Goodput], "bit/s")
			}
			if text != "" {
				list = gatherWorst(list, t.Sample, 0, "the "+node.Node+"'s recording holds "+text)
				break
			}
		}
	}
	return worded(e, list, "%s")
}

func recordingPause(e *evidence) []analysis.Finding {
	var list []worstSample
	for _, t := range e.traced {
		for i := range t.trace.Nodes {
			node := &t.trace.Nodes[i]
			last, longest, at := 0.0, 0.0, 0.0
			for _, end := range node.Within(node.Times) {
				if end-last > longest {
					longest, at = end-last, last
				}
				last = end
			}
			if longest > longestPause {
				list = gatherWorst(list, t.Sample, longest, fmt.Sprintf("for %.1f s after %.0f s (%s)", longest, at, node.Node))
				break
			}
		}
	}
	return worded(e, list, "a recorder took no snapshot %s")
}

// oneCPUSaturated finds nodes with one busy CPU among idle ones. It finds nothing if nodes
// share a machine and the run does not say which CPUs each node had.
func oneCPUSaturated(e *evidence) []analysis.Finding {
	if e.OneMachine() && e.Run.Plan.Settings["cpus"] == "" {
		return nil
	}
	var list []worstSample
	for _, t := range e.traced {
		for i := range t.trace.Nodes {
			node := &t.trace.Nodes[i]
			busiest := stat.Median(analysis.FiniteOnly(node.Within(node.Busiest)))
			if node.CPUs < 2 || !(busiest >= fullCPU) {
				continue
			}
			others := (stat.Median(analysis.FiniteOnly(node.Within(node.Busy))) - busiest) / float64(node.CPUs-1)
			if others <= idleOthers {
				list = gatherWorst(list, t.Sample, busiest, fmt.Sprintf("of the %s's %s CPUs was %s busy and the others %s",
					node.Node, strconv.Itoa(node.CPUs), analysis.Percent(busiest), analysis.Percent(max(0, others))))
				break
			}
		}
	}
	return worded(e, list, "one %s")
}
