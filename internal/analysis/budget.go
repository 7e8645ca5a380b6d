package analysis

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// This file says where the error of a figure comes from.

// ErrorPart is one source of a figure's error, as half a width at 95 %, relative to the
// figure: 0.02 for ±2 %. A source that can't be told is left out, never 0.
type ErrorPart struct {
	Source   string  `json:"source"`
	Relative float64 `json:"relative"`
}

// The sources of error.
const (
	ErrorRounds    = "rounds"       // what differs from round to round, but for the tick
	ErrorTick      = "tick"         // the kernel counts CPU time by ticks
	ErrorEdges     = "window_edges" // what is recorded begins and ends beside the load's window
	ErrorClock     = "clock"        // the resolution of clocks and histograms
	ErrorGenerator = "generator"    // the load generator's own delay
)

// resolution of a histogram: three significant digits, kept in 1,024 or more steps between
// a power of two and the next.
const histogramStep = 1.0 / 1024

// budget is a figure whose sources of error are asked for.
type budget struct {
	*Evidence
	at        Place
	contender string
	figure    float64
}

// parts are the sources of a figure's error, the largest first; nil for figures that do not
// stand for their step. interval is the figure's own.
func (b budget) parts(interval *Interval) []ErrorPart {
	row := b.at.Row()
	if !row.Has(result.Headline) || !(b.figure > 0) {
		return nil
	}
	var list []ErrorPart
	add := func(source string, relative float64, known bool) {
		if known && relative >= 0 && !math.IsInf(relative, 1) {
			list = append(list, ErrorPart{source, relative})
		}
	}
	tick, ticked := 0.0, false
	if row.Has(result.CPUTime) {
		tick, ticked = b.tick()
		add(ErrorTick, tick, ticked)
		edges, known := b.edges()
		add(ErrorEdges, edges, known)
	}
	if interval != nil {
		rounds := stat.HalfWidth(interval[0], interval[1])
		add(ErrorRounds, math.Sqrt(max(0, rounds*rounds-tick*tick)), true)
	}
	if row.Clock != "" {
		add(ErrorClock, histogramStep+1e-9/b.figure, true)
		own, known := b.generator()
		add(ErrorGenerator, own, known)
	}
	slices.SortStableFunc(list, func(a, b ErrorPart) int { return cmp.Compare(b.Relative, a.Relative) })
	return list
}

// samples are the valid ones behind the figure.
func (b budget) samples() []*result.Sample {
	var list []*result.Sample
	for _, s := range b.Valid {
		if s.Contender == b.contender && s.Step == b.at.Step && GroupOf(s) == b.at.Group {
			list = append(list, s)
		}
	}
	return list
}

// tick is the error of a kernel that samples CPU time: of n ticks that found the CPU busy, the
// root of n by chance.
func (b budget) tick() (relative float64, known bool) {
	hz, err := strconv.ParseFloat(b.Run.Environment[HzKey], 64)
	if err != nil || b.Run.Environment[TickKey] != "y" {
		return 0, false
	}
	busy := 0.0 // CPU-seconds of all rounds
	for _, s := range b.samples() {
		switch row := b.at.Row(); row.Per {
		case result.Goodput:
			busy += s.Metrics[row.Name] * s.Metrics[result.Goodput] / 1e9 * float64(s.Elapsed)
		case result.Rate:
			busy += s.Metrics[row.Name] * s.Metrics[result.Rate] * float64(s.Elapsed)
		}
	}
	return twoSided / math.Sqrt(busy*hz), busy > 0
}

// twoSided is how many standard deviations hold 95 % of normal noise, on either side.
const twoSided = 1.96

// edges is how much longer or shorter the recorded window is than the load's, in the
// middle round. A window of file transfers has no length of its own.
func (b budget) edges() (relative float64, known bool) {
	var apart []float64
	for _, s := range b.samples() {
		planned := float64(b.Run.Plan.Duration)
		if s.Slices != nil {
			planned = float64(len(s.Slices.Cycles)) * float64(b.Run.Plan.Slice)
		}
		if _, whole := s.Metrics[result.Transfers]; !whole && planned > 0 && s.Elapsed > 0 {
			apart = append(apart, math.Abs(float64(s.Elapsed)/planned-1))
		}
	}
	return stat.Median(apart), len(apart) > 0
}

// generator is the part of a latency that the client itself made: its wake-up after
// the kernel had the response, and its late sends. network_time has none of it.
func (b budget) generator() (relative float64, known bool) {
	clock := b.at.Row().Clock
	suffix := strings.TrimPrefix(b.at.Metric, clock)
	of := func(clock string) float64 { return b.Headline(b.at.With(clock+suffix), b.contender) }
	own := of("service_time") - of("network_time")
	switch clock {
	case "latency":
		if lag := of("send_lag"); lag > 0 {
			own += lag
		}
	case "service_time":
	default:
		return 0, false
	}
	return max(0, own) / b.figure, !math.IsNaN(own)
}
