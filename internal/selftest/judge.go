package selftest

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/selftest/plant"
	"github.com/cnibench/cnibench/internal/unit"
)

// Schema is the version of Result's JSON.
const Schema = "cnibench/selftest/1"

// Result is the result of a self-test.
type Result struct {
	Schema string  `json:"schema"`
	Passed bool    `json:"passed"`
	Trials []Trial `json:"trials"`
}

// Trial is one planted truth and whether the run found it.
type Trial struct {
	Name    string `json:"name"`
	Planted string `json:"planted"` // what was planted, as text
	Wanted  string `json:"wanted"`  // what the run must find
	Found   string `json:"found"`
	// LeftOut is the reason why the trial could not be made. The trial then neither passes nor
	// fails.
	LeftOut string `json:"left_out,omitempty"`
	Passed  bool   `json:"passed"`
}

// Tolerances of the self-test.
const (
	maxHalfWidth  = 0.25  // largest half width of a useful interval
	twinTolerance = 0.08  // how far from 1 the ratio of two identical contenders may be if its interval excludes 1; a small machine resolves no less
	rateTolerance = 0.03  // of the rate of a capped link
	lossTolerance = 0.005 // of the share of lost datagrams, about 5 standard deviations

	delayTolerance = 0.10 // of a delay; timers of a virtual machine are about 0.1 ms late
	stallTolerance = 0.25 // of the wait that a stall causes
)

// Judge compares a run of the copies with what was planted.
func (b Conditions) Judge(rec *result.Record, r *analysis.Report) Result {
	out := Result{Schema: Schema, Passed: true}
	add := func(leftOut string, t Trial) {
		t.LeftOut = leftOut
		out.Add(t)
	}
	add("", b.twins(r, bulkStep, result.Goodput))
	add("", b.twins(r, requestStep, result.NetworkTimeP50))
	add("", b.judgeStall(r))
	for _, t := range []Trial{b.judgeCap(r), lossy(r), b.slow(r), b.judgeDelay(r), b.judgeNarrow(rec)} {
		add(b.NoFaults, t)
	}
	add(b.NoNeighbour, b.neighbour(rec))
	return out
}

// Add adds a trial. One that was left out neither passes nor fails.
func (r *Result) Add(t Trial) {
	if t.LeftOut != "" {
		t.Found, t.Passed = "", false
	} else {
		r.Passed = r.Passed && t.Passed
	}
	r.Trials = append(r.Trials, t)
}

// figure returns a contender's figure.
func figure(r *analysis.Report, contender, step, metric string) *analysis.Result {
	i := slices.IndexFunc(r.Results, func(x analysis.Result) bool {
		return x.Contender == contender && x.Step == step && x.Metric == metric
	})
	if i < 0 {
		return nil
	}
	return &r.Results[i]
}

const nothing = "no figure: no round was valid"

func (b Conditions) ratio(c *analysis.Comparison) string {
	text := fmt.Sprintf("%.3f times %s", c.Ratio, b.Baseline)
	if c.CI != nil {
		text += fmt.Sprintf(" (%.3f to %.3f)", c.CI[0], c.CI[1])
	}
	return text
}

func (b Conditions) twins(r *analysis.Report, step, metric string) Trial {
	t := Trial{Name: "twins: " + metric, Planted: "the same network a second time", Wanted: fmt.Sprintf("1 in the interval of the ratio, or within %.0f %%; the interval within ±%.0f %%", 100*twinTolerance, 100*maxHalfWidth), Found: nothing}
	x := figure(r, twin, step, metric)
	if x == nil || x.VsBaseline == nil {
		return t
	}
	c := x.VsBaseline
	t.Found = b.ratio(c)
	t.Passed = c.CI != nil && c.HalfWidth() <= maxHalfWidth && (math.Abs(c.Ratio-1) <= twinTolerance || c.CI[0] <= 1 && c.CI[1] >= 1)
	return t
}

func (b Conditions) judgeCap(r *analysis.Report) Trial {
	rate, _ := b.loads()
	// The cap counts whole frames; goodput counts what TCP carries in them.
	high := float64(rate) * 1.005
	low := float64(unit.Ceiling(rate, 1500, 0, false)) * (1 - rateTolerance)
	t := Trial{Name: "rate", Planted: fmt.Sprintf("a link of %v", rate), Wanted: fmt.Sprintf("%v to %v", unit.BitRate(low), unit.BitRate(high)), Found: nothing}
	if x := figure(r, string(plant.Capped), bulkStep, result.Goodput); x != nil {
		t.Found, t.Passed = unit.BitRate(x.Median).String(), x.Median >= low && x.Median <= high
	}
	return t
}

func lossy(r *analysis.Report) Trial {
	t := Trial{Name: "loss", Planted: fmt.Sprintf("%.1f %% of the datagrams dropped, by count", 100*plant.Loss),
		Wanted: fmt.Sprintf("%.1f %% to %.1f %%", 100*(plant.Loss-lossTolerance), 100*(plant.Loss+lossTolerance)), Found: nothing}
	if x := figure(r, string(plant.Lossy), datagramStep, result.Loss); x != nil {
		t.Found, t.Passed = fmt.Sprintf("%.2f %%", 100*x.Median), math.Abs(x.Median-plant.Loss) <= lossTolerance
	}
	return t
}

func (b Conditions) slow(r *analysis.Report) Trial {
	t := Trial{Name: "work on the path", Planted: fmt.Sprintf("%d rules that every packet passes", plant.Rules), Wanted: "a longer network time, with an interval above 1", Found: nothing}
	if x := figure(r, string(plant.Slow), requestStep, result.NetworkTimeP50); x != nil && x.VsBaseline != nil {
		c := x.VsBaseline
		t.Found, t.Passed = b.ratio(c), c.CI != nil && c.CI[0] > 1
	}
	return t
}

func (b Conditions) judgeDelay(r *analysis.Report) Trial {
	delay := plant.Delay().Seconds()
	low, high := delay*(1-delayTolerance), delay*(1+delayTolerance)
	t := Trial{Name: "delay", Planted: fmt.Sprintf("a link that holds the end of %d bytes back for %s", plant.DelayedSize, unit.Format(delay, "s")),
		Wanted: fmt.Sprintf("a network time that is longer by %s to %s", unit.Format(low, "s"), unit.Format(high, "s")), Found: nothing}
	base, x := figure(r, b.Baseline, delayStep, result.NetworkTimeP50), figure(r, string(plant.Delayed), delayStep, result.NetworkTimeP50)
	if base != nil && x != nil {
		longer := x.Median - base.Median
		t.Found, t.Passed = unit.Format(longer, "s"), longer >= low && longer <= high
	}
	return t
}

// The figures that show a stall. If the load generator was late, the latency is not used. The
// network time shows the stall too, because the step has one connection for each request that
// is planned within a stall.
const (
	latencyP95     = "latency_p95"
	networkTimeP95 = "network_time_p95"
)

// judgeStall judges the step whose server holds its responses for a fifth of the time. A request
// that is planned during a stall waits until the stall ends, so a twentieth of all requests
// wait for more than three quarters of a stall. A load that pauses during a stall would see few
// of these.
func (b Conditions) judgeStall(r *analysis.Report) Trial {
	wait := stall.Seconds() - 0.05*stallEvery.Seconds()
	low, high := wait*(1-stallTolerance), wait*(1+stallTolerance)
	t := Trial{Name: "stalls", Planted: fmt.Sprintf("a server that holds its responses for %v of each %v", stall, stallEvery),
		Wanted: fmt.Sprintf("a p95 of latency, or else of network time, of %s to %s", unit.Format(low, "s"), unit.Format(high, "s")), Found: nothing}
	x := figure(r, b.Baseline, stallStep, latencyP95)
	if x == nil {
		x = figure(r, b.Baseline, stallStep, networkTimeP95)
	}
	if x != nil {
		t.Found, t.Passed = x.Metric+" of "+unit.Format(x.Median, "s"), x.Median >= low && x.Median <= high
	}
	return t
}

func (b Conditions) judgeNarrow(rec *result.Record) Trial {
	other := "more"
	if b.MTU > 0 {
		other = strconv.Itoa(b.MTU)
	}
	t := Trial{Name: "packet size", Planted: fmt.Sprintf("a link of %d bytes where its twin's takes %s", plant.NarrowMTU, other),
		Wanted: fmt.Sprintf("%d bytes cross whole to that pod, %s to its twin", plant.NarrowMTU, other), Found: "no packet sizes: the check failed"}
	size := func(contender string) int {
		n, _ := strconv.Atoi(rec.Run.Environment["check.mtu."+contender+".path"])
		return n
	}
	if there, beside := size(string(plant.Narrow)), size(twin); there > 0 || beside > 0 {
		t.Found = fmt.Sprintf("%d and %d bytes", there, beside)
		t.Passed = there == plant.NarrowMTU && beside > there && (b.MTU == 0 || beside == b.MTU)
	}
	return t
}

func (b Conditions) neighbour(rec *result.Record) Trial {
	away, all, used := 0, 0, 0
	for i := range rec.Samples {
		if s := &rec.Samples[i]; s.Contender == b.Baseline && s.Slices != nil {
			away += len(s.Slices.Disturbed)
			all += s.Slices.CountCycles()
			if slices.ContainsFunc(s.Notes, func(n result.Reason) bool { return n.Code == "disturbed_cycles" }) {
				used++
			}
		}
	}
	t := Trial{Name: "busy neighbour", Planted: "another process that keeps half of the CPUs busy, half of the time", Wanted: "cycles that were disturbed, and cycles that were not",
		Found: fmt.Sprintf("%d of %d cycles left out", away, all), Passed: away > 0 && away < all}
	if used > 0 {
		t.Found += fmt.Sprintf("; %s had too few quiet cycles, and used all", unit.Plural(used, "step"))
	}
	return t
}
