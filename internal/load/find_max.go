package load

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Probe is one try of FindMax.
type Probe struct {
	AskedRate    float64 `json:"asked_rate"` // 1/s; 0 is the closed loop that begins the search
	Rate         float64 `json:"rate"`       // achieved, 1/s
	P99          float64 `json:"p99"`        // of the latency, s; of the closed loop's service time
	LateFraction float64 `json:"late_fraction"`
	Answered     float64 `json:"answered"` // share of the plan
	Duration     float64 `json:"duration"` // s
	Passed       bool    `json:"passed"`
	Why          string  `json:"why,omitempty"` // why the probe did not pass
}

const (
	maxRaises     = 6    // how often at most the upper end of the search is raised
	bisections    = 7    // at most
	closeEnough   = 0.02 // width of the search, as a share of its upper end, at which bisection stops
	maxRestarts   = 3    // how often at most the search begins again at a higher rate
	triesAbove    = 4    // tries of the lowest rate that failed, before it counts as too high
	confirmations = 10   // tries at most to confirm a rate, each at a rate a tenth lower
	minAchieved   = 0.95 // share of the asked rate: below it a backlog grows, which a high bound and the drain would hide
)

// FindMax finds the highest rate that passes: the 99th percentile of the latency is at
// most bound, 99 % of the sends are on time, 95 % of the rate is answered within the
// window, and 99 % of the plan by the end of the drain. It bisects in probes of a fifth
// of cfg.Duration, at least a second. The search begins at the rate of a closed loop, and
// goes above that rate if it passes. A rate that fails is tried a second time, in case
// something disturbed the machine. The rate that is found is confirmed both ways: it
// passes a run of the whole cfg.Duration, and the rate above fails several of them;
// otherwise the search goes on from that rate. FindMax returns the result of the run that
// confirmed the rate, the rate and all probes. It ignores cfg's Rate, Ramp, Steps, Begin,
// End and Log. Errors: those of Run, and that no rate passes.
func FindMax(ctx context.Context, cfg Config, bound time.Duration) (best float64, res *Result, probes []Probe, err error) {
	if bound <= 0 {
		return 0, nil, nil, wrong("a bound of %v for the 99th percentile; it must be above 0", bound)
	}
	cfg.Rate, cfg.Ramp, cfg.Steps, cfg.Begin, cfg.End, cfg.Log = 0, 0, nil, nil, nil, nil
	short := cfg
	short.Duration = min(cfg.Duration, max(cfg.Duration/5, time.Second))
	try := func(cfg Config, rate float64) (bool, error) {
		cfg.Rate = rate
		cfg.Poisson = cfg.Poisson && rate > 0
		if res, err = Run(ctx, cfg); err != nil {
			return false, err
		}
		if res.Interrupted {
			return false, fmt.Errorf("load: interrupted before the highest rate was found: %w", context.Cause(ctx))
		}
		p := judgeProbe(res, rate, bound)
		probes = append(probes, p)
		return p.Passed, nil
	}
	if _, err := try(short, 0); err != nil {
		return 0, nil, probes, err
	}
	if res.Rate() == 0 {
		return 0, res, probes, errors.New("load: the closed loop that begins the search had no response within its window; is the server overloaded?")
	}
	var confirmed *Result // of the highest rate so far that was confirmed
	best, err = search(res.Rate(),
		func(rate float64) (bool, error) { return try(short, rate) },
		func(rate float64) (bool, error) {
			passed, err := try(cfg, rate)
			if passed {
				confirmed = res
			}
			return passed, err
		})
	switch {
	case err != nil:
		return 0, nil, probes, err
	case best == 0:
		last := probes[len(probes)-1]
		return 0, res, probes, fmt.Errorf("load: no rate down to %.0f/s kept the 99th percentile below %v: the last probe failed because %s; is the bound too low, or the machine busy?",
			last.AskedRate, bound, last.Why)
	}
	return best, confirmed, probes, nil
}

// search returns the highest rate that passes probe and then confirm, each in one of two
// tries; 0 if there is none. It begins near guess. Then it tries the lowest rate that
// failed several times, for longer than most disturbances last. If that rate passes now,
// the search begins again there.
func search(guess float64, probe, confirm func(rate float64) (bool, error)) (best float64, err error) {
	low, high := 0.0, 0.95*guess
	for restarts := 0; ; restarts++ {
		if low, high, err = bracket(low, high, probe); err != nil {
			return 0, err
		}
		found := 0.0
		for rate, n := low, 0; rate > best && n < confirmations; rate, n = 0.9*rate, n+1 {
			passed, err := oneOf(2, confirm, rate)
			if err != nil {
				return 0, err
			}
			if passed {
				found = rate
				break
			}
			high = rate
		}
		best = max(best, found)
		if restarts == maxRestarts || best == 0 || high <= best {
			return best, nil
		}
		passed, err := oneOf(triesAbove, confirm, high)
		if err != nil || !passed {
			return best, err
		}
		best, low, high = high, high, min(1.25*high, maxRate)
	}
}

// bracket raises high until it fails, and then bisects. It returns the highest rate that
// passed, at least low, and the lowest that failed; the two are equal if none failed.
func bracket(low, high float64, probe func(rate float64) (bool, error)) (passing, failing float64, err error) {
	for n, factor := 0, 1.25; n <= maxRaises; n, factor = n+1, factor*factor {
		passed, err := oneOf(2, probe, high)
		if err != nil {
			return 0, 0, err
		}
		if !passed {
			break
		}
		if low = high; n == maxRaises || high == maxRate {
			return low, low, nil
		}
		high = min(high*factor, maxRate)
	}
	for n := 0; n < bisections && high-low > closeEnough*high; n++ {
		rate := (low + high) / 2
		passed, err := oneOf(2, probe, rate)
		if err != nil {
			return 0, 0, err
		}
		if passed {
			low = rate
		} else {
			high = rate
		}
	}
	return low, high, nil
}

// oneOf says whether at least one of the tries at the rate passes.
func oneOf(tries int, try func(rate float64) (bool, error), rate float64) (passed bool, err error) {
	for n := 0; n < tries && err == nil && !passed; n++ {
		passed, err = try(rate)
	}
	return passed, err
}

// judgeProbe says whether a probe passed, or the first reason why not.
func judgeProbe(res *Result, rate float64, bound time.Duration) Probe {
	h := res.Latency
	if rate == 0 {
		h = res.ServiceTime
	}
	p := Probe{
		AskedRate: rate, Rate: res.Rate(), P99: float64(h.ValueAtPercentile(99)) / 1e9,
		LateFraction: res.LateFraction(), Answered: share(res.Requests, res.Planned), Duration: res.Elapsed.Seconds(),
	}
	switch {
	case rate == 0:
		p.Why = "a closed loop has no latency"
	case p.P99 > bound.Seconds():
		p.Why = fmt.Sprintf("p99 was %v", time.Duration(h.ValueAtPercentile(99)).Round(time.Microsecond))
	case p.LateFraction > maxLate:
		p.Why = fmt.Sprintf("%.1f %% of the sends were late", 100*p.LateFraction)
	case p.Rate < minAchieved*rate:
		p.Why = fmt.Sprintf("%.0f/s of the %.0f/s that were due were answered in time", p.Rate, rate)
	case p.Answered < minAnswered:
		p.Why = fmt.Sprintf("%.1f %% of the plan was answered", 100*p.Answered)
	default:
		p.Passed = true
	}
	return p
}
