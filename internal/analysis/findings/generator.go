package findings

import (
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/unit"
)

// This file finds figures that describe the load generator or its clock, and not the network.

// lagPercentiles are the percentiles at which the load generator's lag is compared with the
// latency.
var lagPercentiles = []struct{ name, words string }{{"p50", "the median"}, {"p99", "p99"}, {"p99_9", "p99.9"}}

func generatorLate(e *evidence) []analysis.Finding {
	type where struct {
		analysis.ComparableSet
		step string
	}
	var order []where
	parts := map[where][]string{}
	for _, percentile := range lagPercentiles {
		for _, at := range e.Keys {
			if at.Metric != "send_lag_"+percentile.name {
				continue
			}
			text := lag(e, at, at.With("latency_"+percentile.name), percentile.words)
			if text == "" {
				continue
			}
			w := where{at.ComparableSet, at.Step}
			if parts[w] == nil {
				order = append(order, w)
			}
			parts[w] = append(parts[w], text)
		}
	}
	var list []analysis.Finding
	for _, w := range order {
		list = append(list, analysis.Finding{Severity: analysis.Warn, Step: w.step, Text: fmt.Sprintf("%srequests were sent late: %s; latency contains the client's own delay",
			e.GroupPrefix(w.ComparableSet), strings.Join(parts[w], "; "))})
	}
	return list
}

// lag says how much of the latency at a percentile is the client's own delay. It returns ""
// if that is less than half for every contender.
func lag(e *evidence, lags, latencies analysis.FigureKey, at string) string {
	var late []string
	worst, share := 0.0, 0.0
	for _, c := range e.OrderContenders(e.Figures[lags]) {
		lag, latency := e.Headline(lags, c), e.Headline(latencies, c)
		if !(latency > 0) || lag/latency < maxLag {
			continue
		}
		late = append(late, c)
		if lag/latency > share {
			worst, share = lag, lag/latency
		}
	}
	if len(late) == 0 {
		return ""
	}
	return fmt.Sprintf("at %s by up to %v, %s of the latency there (%s)", at, unit.Seconds(worst), unit.FormatPercent(share), analysis.AndList(late))
}

func tickAliased(e *evidence) []analysis.Finding {
	var list []analysis.Finding
	for _, step := range e.Run.Plan.Steps {
		if e.Aliased(step.ID) {
			list = append(list, analysis.Finding{Step: step.ID, Text: fmt.Sprintf(
				"the rate of %v/s is a multiple of the kernel's tick of %s Hz, by which it accounts CPU time: CPU figures are sampled in phase with the load and can be far off, so they are not ranked",
				e.Pace(step.ID), e.Run.Environment[analysis.HzKey])})
		}
	}
	return list
}
