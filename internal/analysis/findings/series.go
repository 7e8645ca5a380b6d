package findings

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// This file has the rules that look at the traces of a step's nodes, second by second. They
// find nothing in samples that were measured in slices, which is the default.

const (
	minFlow    = 1e6  // bit/s; less is no load
	maxPause   = 2.5  // s between two snapshots
	fullCPU    = 0.95 // busy share of the busiest CPU
	idleOthers = 0.50 // mean busy share of the others
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

// worstSample gathers the samples of a findingKey. It becomes one finding, with the text of the
// worst sample.
type worstSample struct {
	findingKey
	rounds []int
	worst  float64
	text   string
}

// gatherWorst adds a sample to the list. A larger value of worst is worse.
func gatherWorst(list []worstSample, s *result.Sample, worst float64, text string) []worstSample {
	at := keyOf(s, "")
	i := slices.IndexFunc(list, func(o worstSample) bool { return o.findingKey == at })
	if i < 0 {
		return append(list, worstSample{at, []int{s.Round}, worst, text})
	}
	if !slices.Contains(list[i].rounds, s.Round) { // another of the sample's nodes
		list[i].rounds = append(list[i].rounds, s.Round)
	}
	if worst > list[i].worst {
		list[i].worst, list[i].text = worst, text
	}
	return list
}

// toFindings makes findings of the list. Their texts are "in 2 rounds of 6 ", followed by
// format with the text of the worst sample.
func toFindings(e *evidence, list []worstSample, format string) []analysis.Finding {
	var out []analysis.Finding
	for _, g := range list {
		f := analysis.Finding{Contender: g.Contender, Step: g.Step,
			Text: fmt.Sprintf("%sin %s "+format, e.GroupPrefix(g.ComparableSet), countOf(g.rounds, e.Rounds()), g.text)}
		if len(g.rounds) == 1 {
			f.Round = g.rounds[0]
		}
		out = append(out, f)
	}
	return out
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
			case t.Metrics[result.Goodput] > minFlow && len(received) > 0 && slices.Max(received) == 0 && node.Node == "server":
				text = "no byte received, beside a goodput of " + unit.Format(t.Metrics[result.Goodput], "bit/s")
			}
			if text != "" {
				list = gatherWorst(list, t.Sample, 0, "the "+node.Node+"'s recording holds "+text)
				break
			}
		}
	}
	return toFindings(e, list, "%s")
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
			if longest > maxPause {
				list = gatherWorst(list, t.Sample, longest, fmt.Sprintf("for %.1f s after %.0f s (%s)", longest, at, node.Node))
				break
			}
		}
	}
	return toFindings(e, list, "a recorder took no snapshot %s")
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
					node.Node, strconv.Itoa(node.CPUs), unit.FormatPercent(busiest), unit.FormatPercent(max(0, others))))
				break
			}
		}
	}
	return toFindings(e, list, "one %s")
}
