package run

import (
	"fmt"
	"strconv"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
	"github.com/cnibench/cnibench/internal/workload"
)

// This file limits what the steps of a plan send: --max-rate.

const (
	maxRateFlag = "max-rate"

	// clusterShare is the share of --line-rate that bulk steps take at most in a
	// cluster, unless the user says more: others work there.
	clusterShare = 0.8
)

// capSteps returns the steps with parameters that keep them below the request's rate. It
// leaves out the steps that can't be kept below --max-rate, notes why in f.uncapped, and
// fails if no step is left. The default limit of a network that others use leaves no step out.
func (f *Request) capSteps(steps []result.Step, inUse bool) (kept []result.Step, err error) {
	var max unit.BitRate
	switch {
	case f.Given[maxRateFlag]:
		if max, err = unit.ParseBitRate(f.MaxRate); err != nil {
			return nil, exit.Usage("--max-rate: %w", err)
		}
	case inUse && f.Study == "":
		line, _, err := f.link()
		if err != nil {
			return nil, err
		}
		max = clusterShare * line
	}
	if max == 0 {
		return steps, nil
	}
	f.uncapped = nil
	for _, s := range steps {
		why := holdTo(&s, max)
		if why == "" || !f.Given[maxRateFlag] {
			kept = append(kept, s)
			continue
		}
		f.uncapped = append(f.uncapped, s.ID+": "+why)
	}
	if kept == nil {
		return nil, exit.Usage("--max-rate %s: no step of the suite can be held to it; choose another --suite, or a higher rate", f.MaxRate)
	}
	return kept, nil
}

// holdTo limits what the step sends to that rate. It returns why that is impossible, else "".
func holdTo(s *result.Step, max unit.BitRate) (why string) {
	peak, known := peakRate(s)
	_, bulk := s.Params[result.BandwidthParam]
	_, share := workload.Share(s.Params[result.RateParam])
	switch {
	case known && peak <= max:
		return ""
	case bulk:
		*s = s.WithBandwidth(max)
		return ""
	case known:
		return fmt.Sprintf("it sends %v of payload; --set %s.rate lowers that", peak, s.ID)
	case share:
		return "its rate is a share of what the network sustains, and the search for that takes the network to its limit; leave --rates auto out"
	}
	return "it sends as fast as it is answered, and " + s.Workload + " has no parameter that caps it"
}

// peakRate returns the most payload that a step sends in one direction, bit/s, and whether
// anything caps it.
func peakRate(s *result.Step) (rate unit.BitRate, known bool) {
	if rate := s.Bandwidth(); s.Params[result.BandwidthParam] != nil && fmt.Sprint(s.Params[result.FlowsParam]) != "0" {
		return rate, rate > 0
	}
	if s.Workload == "idle" {
		return 0, true
	}
	perSecond, err := strconv.ParseFloat(fmt.Sprint(s.Params[result.RateParam]), 64)
	if err != nil || perSecond <= 0 {
		return 0, false
	}
	var size unit.Bytes
	for _, side := range []string{"request", "response"} {
		if n, err := unit.ParseBytes(fmt.Sprint(s.Params[side])); err == nil {
			size = max(size, n)
		}
	}
	return unit.BitRate(perSecond * float64(size) * 8), true
}
