package analysis

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/unit"
)

// This file finds where the figures tell of the load and its clock rather than
// of the network.

// TickAliased is the code of the finding that names a step whose CPU figures
// were sampled in phase with its load.
const TickAliased = "cpu_tick_aliased"

// The environment keys of how the kernel accounts CPU time.
const (
	tickKey = "kernel.config.TICK_CPU_ACCOUNTING"
	hzKey   = "kernel.config.HZ"
)

// lagPercentiles are where the load generator's lag is held against the
// latency, with the words for it.
var lagPercentiles = []struct{ name, words string }{{"p50", "the median"}, {"p99", "p99"}, {"p99_9", "p99.9"}}

func generatorLate(e *evidence) []Finding {
	type where struct {
		group
		step string
	}
	var order []where
	parts := map[where][]string{}
	for _, percentile := range lagPercentiles {
		for _, at := range e.places {
			if at.Metric != "send_lag_"+percentile.name {
				continue
			}
			text := e.lag(at, place{at.group, at.Step, "latency_" + percentile.name}, percentile.words)
			if text == "" {
				continue
			}
			w := where{at.group, at.Step}
			if parts[w] == nil {
				order = append(order, w)
			}
			parts[w] = append(parts[w], text)
		}
	}
	var list []Finding
	for _, w := range order {
		list = append(list, Finding{Step: w.step, Text: fmt.Sprintf("%srequests were sent late: %s; latency holds the client's own delay",
			e.in(w.group), strings.Join(parts[w], "; "))})
	}
	return list
}

// lag words how much of the latency at a percentile is the client's own, ""
// where that is less than half for every contender.
func (e *evidence) lag(lags, latencies place, at string) string {
	var late []string
	worst, share := 0.0, 0.0
	for _, c := range e.inOrder(e.figures[lags]) {
		lag, latency := e.headline(lags, c), e.headline(latencies, c)
		if !(latency > 0) || lag/latency < mostLag {
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
	return fmt.Sprintf("at %s by up to %v, %s of the latency there (%s)", at, unit.Seconds(worst), percent(share), andList(late))
}

func tickAliased(e *evidence) []Finding {
	var list []Finding
	for _, step := range e.run.Plan.Steps {
		if e.aliased(step.ID) {
			list = append(list, Finding{Step: step.ID, Text: fmt.Sprintf(
				"the rate of %v/s is a multiple of the kernel's tick of %s Hz, by which it accounts CPU time: CPU figures are sampled in phase with the load and can be far off, so they are not ranked",
				e.pace(step.ID), e.run.Environment[hzKey])})
		}
	}
	return list
}

// aliased says that the kernel sampled a step's CPU time in phase with its load.
func (e *evidence) aliased(step string) bool {
	hz, err := strconv.ParseFloat(e.run.Environment[hzKey], 64)
	rate := e.pace(step)
	return e.run.Environment[tickKey] == "y" && err == nil && hz > 0 && rate > 0 && math.Mod(rate, hz) == 0
}
