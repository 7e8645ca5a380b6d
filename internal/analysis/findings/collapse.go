package findings

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// This file finds what makes a contender many times worse than the baseline: steps that
// collapsed, full connection tracking tables and lost segments. Each is compared with the
// baseline between the same nodes, which tells a fault of the pod network from one of the
// nodes' network.

const (
	farBelow       = 100  // times below the baseline: collapsed
	belowWithLoss  = 10   // times below the baseline, with signs of lost packets: collapsed
	minRetry       = 0.9  // s until connected: the kernel sends a SYN again after 1 s
	lossyShare     = 0.05 // of the segments sent again: a sign of lost packets
	fullTable      = 0.98 // of the limit of the connection tracking table
	minThrottled   = 0.05 // of the scheduler's periods of a CPU quota
	sameLoss       = 0.5  // of a contender's retransmits: the baseline loses as much
	maxRetransmits = 0.01 // of the segments
)

// collapsedSteps finds steps at which a contender carried next to nothing and the baseline
// worked.
func collapsedSteps(e *evidence) []analysis.Finding {
	var list []analysis.Finding
	for _, at := range e.Keys {
		if at.Metric != result.Goodput && at.Metric != result.Rate || at.Metric == result.Rate && (e.Pace(at.Step) > 0 || e.HasMetric(at, result.Goodput)) || e.IsUDP(at.Step) {
			continue
		}
		base := e.Headline(e.BaseOf(at), e.Run.Baseline)
		if !(base > 0) {
			continue
		}
		names := e.OrderContenders(e.Figures[at])
		for _, entry := range e.Run.Plan.Contenders {
			if !slices.Contains(names, entry.ID) && entry.Underlay == at.Underlay {
				names = append(names, entry.ID)
			}
		}
		for _, c := range names {
			if c == e.Run.Baseline {
				continue
			}
			figure, zeros := e.Headline(at, c), zeroSamples(e, at, c)
			switch {
			case zeros > 0 && len(e.Figures[at][c]) <= zeros:
				figure = 0
			case math.IsNaN(figure):
				continue
			}
			signs := signsOfLoss(e, at, c)
			if figure*belowWithLoss > base || figure*farBelow > base && len(signs) == 0 {
				continue
			}
			row := at.Row()
			text := fmt.Sprintf("%s%s of %s's %s", e.GroupPrefix(at.ComparableSet), unit.Format(figure, row.Unit), e.Run.Baseline, unit.Format(base, row.Unit))
			if figure == 0 {
				text += " in " + unit.Plural(zeros, "round")
			}
			list = append(list, analysis.Finding{Contender: c, Step: at.Step, Text: strings.Join(append([]string{text}, signs...), ", "),
				Weight: math.Log(base / max(figure, base*1e-6))})
		}
	}
	return list
}

// zeroSamples counts the invalid samples of a contender whose figure is 0: nothing came
// through.
func zeroSamples(e *evidence, at analysis.FigureKey, contender string) int {
	n := 0
	for i := range e.Samples {
		s := &e.Samples[i]
		if v, given := s.Metrics[at.Metric]; given && v == 0 && s.Verdict != result.Valid && s.Contender == contender && s.Step == at.Step && analysis.SetOf(s) == at.ComparableSet {
			n++
		}
	}
	return n
}

// signsOfLoss returns what shows that a contender's packets were lost at a step.
func signsOfLoss(e *evidence, at analysis.FigureKey, contender string) []string {
	var signs []string
	for _, metric := range []string{"connect_time_p50", "connect_time_max"} {
		if wait := e.Headline(at.With(metric), contender); wait >= minRetry {
			signs = append(signs, fmt.Sprintf("connect %v (a SYN is sent again after 1 s)", unit.Seconds(wait)))
			break
		}
	}
	if share := resent(e)[findingKey{at.ComparableSet, contender, at.Step, ""}]; share >= lossyShare {
		signs = append(signs, unit.FormatPercent(share)+" of the segments sent again")
	}
	return signs
}

// fullConntrack finds nodes whose connection tracking table was full in a sample's window.
func fullConntrack(e *evidence) []analysis.Finding {
	var list []worstSample
	for i := range e.Opt.Traces {
		t := &e.Opt.Traces[i]
		for _, node := range t.Nodes {
			if !(node.TrackedLimit > 0) || node.Tracked < fullTable*node.TrackedLimit {
				continue
			}
			j := slices.IndexFunc(e.Samples, func(s result.Sample) bool { return s.Key() == t.Key })
			if j < 0 {
				continue
			}
			list = gatherWorst(list, &e.Samples[j], node.Tracked, fmt.Sprintf("the %s's table held %.0f of %.0f connections: the kernel dropped new ones there",
				e.NodeOf(node.Node), node.Tracked, node.TrackedLimit))
		}
	}
	return toFindings(e, list, "%s")
}

// cpuLimited finds samples whose load was stopped by its pods' CPU limit, and says that all
// pods have one where the run gave it: the baseline's, too, so that ratios do not show it.
func cpuLimited(e *evidence) []analysis.Finding {
	limit := e.Run.Plan.Settings["pod-cpu"]
	whose := "the CPU limit of its pods"
	if limit != "" {
		whose = "the run's own limit, --pod-cpu " + limit + ", which the pods of the baseline have, too: ratios do not show it"
	}
	var list []worstSample
	for i := range e.Opt.Traces {
		t := &e.Opt.Traces[i]
		s := e.ValidSample(t.Key)
		for _, node := range t.Nodes {
			if s == nil || node.Throttled < minThrottled || s.Workload == analysis.Idle {
				continue
			}
			list = gatherWorst(list, s, node.Throttled, fmt.Sprintf("the load on the %s was stopped in %s of the scheduler's periods by %s",
				e.NodeOf(node.Node), unit.FormatPercent(node.Throttled), whose))
		}
	}
	found := toFindings(e, list, "%s")
	if len(found) == 0 && limit != "" {
		found = append(found, analysis.Finding{Severity: analysis.Info, Text: "every pod may use " + limit + " of CPU (--pod-cpu), the baseline's, too: ratios do not show what that costs"})
	}
	for i := range found {
		found[i].Next = "Run again without --pod-cpu, or with more; a limit that pods get from elsewhere is the namespace's LimitRange."
	}
	return found
}

// resent returns the share of the TCP segments that were sent again, the median of the
// rounds, by contender and step.
func resent(e *evidence) map[findingKey]float64 {
	shares := map[findingKey][]float64{}
	_, packets := e.Packets()
	for _, s := range e.Valid {
		payload := e.Opt.MTU - analysis.TCPHeaders
		if p := packets[s.Contender]; p != nil && p.Effective() > analysis.TCPHeaders {
			payload = p.Effective() - analysis.TCPHeaders
		}
		again, counted := s.Metrics[result.Retransmits]
		if segments := s.Metrics[result.Goodput] * float64(s.Elapsed) / 8 / float64(payload); counted && segments > 0 {
			shares[keyOf(s, "")] = append(shares[keyOf(s, "")], again/segments)
		}
	}
	median := map[findingKey]float64{}
	for at, list := range shares {
		median[at] = stat.Median(list)
	}
	return median
}

// retransmitStorm finds contenders that send many segments again, and says whether the
// baseline does so between the same nodes.
func retransmitStorm(e *evidence) []analysis.Finding {
	all := resent(e)
	var order []findingKey
	for at, share := range all {
		if share > maxRetransmits {
			order = append(order, at)
		}
	}
	slices.SortFunc(order, func(a, b findingKey) int { return e.compareKeys(a, b) })
	var list []analysis.Finding
	for _, at := range order {
		share, text := all[at], unit.FormatPercent(all[at])+" of the TCP segments were sent again"
		base, measured := all[findingKey{at.ComparableSet, e.Run.Baseline, at.Step, ""}]
		switch {
		case at.Contender == e.Run.Baseline:
			text += ": the nodes' own network loses packets, or is the limit"
		case !measured:
		case base > maxRetransmits && base >= sameLoss*share:
			text += fmt.Sprintf("; %s between the same nodes %s: the nodes' own network loses as much, it is not the pod network", e.Run.Baseline, unit.FormatPercent(base))
		case base < sameLoss*share:
			text += fmt.Sprintf("; %s between the same nodes %s: only pods lose, on a node's forwarding path (rules, queues, offload, MTU)", e.Run.Baseline, unit.FormatPercent(base))
		}
		list = append(list, analysis.Finding{Contender: at.Contender, Step: at.Step, Text: e.GroupPrefix(at.ComparableSet) + text + e.describeNodes()})
	}
	return list
}

// describeNodes names the nodes of the run; "" if they are not known.
func (e *evidence) describeNodes() string {
	if client, server := e.NodeOf("client"), e.NodeOf("server"); client != "client" && server != "server" {
		return fmt.Sprintf(" (from %s to %s)", client, server)
	}
	return ""
}
