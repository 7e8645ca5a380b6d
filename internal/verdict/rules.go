package verdict

import (
	"fmt"
	"math"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

const (
	// LineRateTolerance is how far above the line rate a goodput may lie: a
	// shaper's burst and the clock of the window, not more.
	LineRateTolerance = 1.02
	// LeastRate is the share of the asked rate that must be reached; with
	// less, the latencies are those of a smaller load.
	LeastRate = 0.99
	// MostSteal is the share of a node's CPU time that the hypervisor may
	// take. Above it the figures are the neighbours'. No study names a limit;
	// a tenth already moves a CPU-bound goodput by a tenth.
	MostSteal = 0.10
	// LeastWindow is the share of the planned duration that must have been
	// measured.
	LeastWindow = 0.5
)

type rule struct {
	Rule
	faults func(s *result.Sample, c Context) []string
}

var rules = []rule{
	{Rule{"missing_result",
		"A metric that the workload always gives is absent, not a number, infinite, negative, or zero where zero is impossible.",
		"Read the tool's output in the sample's raw folder."}, missingResult},
	{Rule{"above_line_rate",
		"The goodput is more than 2 % above the line rate of the underlay.",
		"Check that the traffic crossed the underlay and that the line rate is the one configured."}, aboveLineRate},
	{Rule{"rate_short",
		"The achieved rate is below 99 % of the asked one, so that the latencies are those of a smaller load.",
		"Ask for a lower rate, or give client and server more CPUs."}, rateShort},
	{Rule{"cpu_steal",
		"The hypervisor took more than 10 % of a node's CPU time.",
		"Run on a machine of your own, or when its neighbours are quiet."}, cpuSteal},
	{Rule{"short_window",
		"The measured window is shorter than half of the planned duration.",
		"Read the tool's output in the sample's raw folder: the load ended early."}, shortWindow},
}

func missingResult(s *result.Sample, c Context) []string {
	var faults []string
	for _, name := range c.Required {
		v, there := s.Metrics[name]
		switch {
		case !there:
			faults = append(faults, name+" is missing")
		case math.IsNaN(v) || math.IsInf(v, 0):
			faults = append(faults, fmt.Sprintf("%s is %v, not a finite number", name, v))
		case v < 0 && !mayBeNegative(name):
			faults = append(faults, fmt.Sprintf("%s is %v, which is impossible", name, v))
		case v == 0 && !mayBeZero(name):
			faults = append(faults, name+" is 0, which is impossible: nothing was measured")
		}
	}
	return faults
}

func mayBeNegative(name string) bool { return name == "memory_overhead" }

// mayBeZero says that nothing at all can be a true result: no loss, a quiet
// mode of the CPU; no time and no goodput can't.
func mayBeZero(name string) bool {
	switch name {
	case "goodput", "rate", "setup_time", "memory_used", "cpu_per_gbit", "cpu_per_request":
		return false
	}
	return strings.HasPrefix(name, "send_lag_") || !result.IsLatency(name)
}

func aboveLineRate(s *result.Sample, c Context) []string {
	goodput := s.Metrics["goodput"]
	if c.LineRate <= 0 || !(goodput > float64(c.LineRate)*LineRateTolerance) {
		return nil
	}
	return []string{fmt.Sprintf("goodput %v is above the line rate of %v", unit.BitRate(goodput), c.LineRate)}
}

func rateShort(s *result.Sample, c Context) []string {
	rate, there := s.Metrics["rate"]
	if c.Asked <= 0 || !there || !(rate < c.Asked*LeastRate) {
		return nil
	}
	return []string{fmt.Sprintf("%v of the %v asked for were achieved (%.1f %%)", unit.PerSecond(rate), unit.PerSecond(c.Asked), 100*rate/c.Asked)}
}

func cpuSteal(s *result.Sample, c Context) []string {
	if c.CPUs <= 0 {
		return nil
	}
	var faults []string
	for _, side := range []string{"client", "server"} {
		share := s.Metrics["cpu_"+side+"_steal"] / float64(c.CPUs)
		if share > MostSteal {
			faults = append(faults, fmt.Sprintf("the hypervisor took %.0f %% of the CPU time of the %s's node", 100*share, side))
		}
	}
	return faults
}

func shortWindow(s *result.Sample, c Context) []string {
	if c.Duration <= 0 || !(s.Elapsed < c.Duration*LeastWindow) {
		return nil
	}
	return []string{fmt.Sprintf("%v measured of %v planned", s.Elapsed, c.Duration)}
}
