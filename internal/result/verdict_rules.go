package result

import (
	"fmt"
	"math"

	"github.com/cnibench/cnibench/internal/unit"
)

const (
	// LineRateTolerance is how far above the line rate, or what headers leave
	// of it, a goodput may lie: a shaper's burst and the clock of the window,
	// not more.
	LineRateTolerance = 1.02
	// MaxSteal is the share of the CPU time of client and server that the
	// hypervisor may take. Above it the figures are the neighbours'. No study names a limit;
	// a tenth already moves a CPU-bound goodput by a tenth.
	MaxSteal = 0.10
	// MinWindow is the share of the planned duration that must have been
	// measured.
	MinWindow = 0.5
)

// verdictRules are in the order in which reasons are listed. What each code means to
// a reader, and what to do then, stands in analysis with all other findings.
var verdictRules = []struct {
	code   string
	faults func(s *Sample, c JudgeContext) []string
}{
	{"missing_result", missingResult},
	{"above_line_rate", aboveLineRate},
	{"cpu_steal", cpuSteal},
	{"short_window", shortWindow},
}

func missingResult(s *Sample, c JudgeContext) []string {
	var faults []string
	for _, name := range c.Required {
		v, given := s.Metrics[name]
		row, _ := LookupMetric(name)
		switch {
		case !given && tooFewFor(s, row):
			// A percentile that so few requests don't carry is left out on purpose.
		case !given:
			faults = append(faults, name+" is missing")
		case math.IsNaN(v) || math.IsInf(v, 0):
			faults = append(faults, fmt.Sprintf("%s is %v, not a finite number", name, v))
		case v < 0 && !row.Has(MayBeNegative):
			faults = append(faults, fmt.Sprintf("%s is %v, which is impossible", name, v))
		case v == 0 && !row.Has(MayBeZero):
			faults = append(faults, name+" is 0, which is impossible: nothing was measured")
		}
	}
	return faults
}

// tooFewFor says whether the metric is a percentile with fewer than ten values of its
// histogram beyond it.
func tooFewFor(s *Sample, m Metric) bool {
	h := s.Histograms[m.Clock]
	return m.Percent > 0 && h != nil && !EnoughFor(m.Percent, h.TotalCount())
}

func aboveLineRate(s *Sample, c JudgeContext) []string {
	goodput := unit.BitRate(s.Metrics[Goodput])
	limit, what := c.LineRate, fmt.Sprintf("the line rate of %v", c.LineRate)
	if c.Ceiling > 0 {
		limit, what = c.Ceiling, fmt.Sprintf("the %v that headers leave of %s", c.Ceiling, what)
	}
	if limit <= 0 || !(goodput > limit*LineRateTolerance) {
		return nil
	}
	return []string{fmt.Sprintf("goodput %v is above %s", goodput, what)}
}

func cpuSteal(s *Sample, c JudgeContext) []string {
	if c.CPUs <= 0 {
		return nil
	}
	share := (s.Metrics[CPUClientSteal] + s.Metrics[CPUServerSteal]) / float64(c.CPUs)
	if !(share > MaxSteal) {
		return nil
	}
	return []string{fmt.Sprintf("the hypervisor took %.0f %% of the CPU time of client and server", 100*share)}
}

func shortWindow(s *Sample, c JudgeContext) []string {
	if c.Duration <= 0 || !(s.Elapsed < c.Duration*MinWindow) {
		return nil
	}
	return []string{fmt.Sprintf("%v measured of %v planned", s.Elapsed, c.Duration)}
}
