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

// ErrorPart is one source of a figure's error: half the width of its 95 % interval,
// relative to the figure, 0.02 for ±2 %. A source of unknown size is left out, never 0.
type ErrorPart struct {
	Source   string  `json:"source"`
	Relative float64 `json:"relative"`
}

// The sources of error.
const (
	ErrorRounds    = "rounds"       // differences from round to round, without the tick's part
	ErrorTick      = "tick"         // the kernel counts CPU time by ticks
	ErrorEdges     = "window_edges" // the recorded window and the load's window differ at their edges
	ErrorClock     = "clock"        // the resolution of clocks and histograms
	ErrorGenerator = "generator"    // the load generator's own delay
)

// histogramStep is the resolution of a histogram with three significant digits: at least
// 1,024 steps from one power of two to the next.
const histogramStep = 1.0 / 1024

// budget finds the sources of the error of one figure.
type budget struct {
	*Evidence
	at        FigureKey
	contender string
	figure    float64
}

// parts returns the sources of the figure's error, the largest first; nil for metrics that
// are no headline of their step.
func (b budget) parts() []ErrorPart {
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
	// At the level of the other parts, whatever that of the report's intervals is.
	if interval := intervalOf(b.Evidence, b.at, b.contender, partsConfidence); interval != nil {
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

// samples returns the valid samples behind the figure.
func (b budget) samples() []*result.Sample {
	var list []*result.Sample
	for _, s := range b.Valid {
		if s.Contender == b.contender && s.Step == b.at.Step && SetOf(s) == b.at.ComparableSet {
			list = append(list, s)
		}
	}
	return list
}

// tick returns the error of a kernel that samples CPU time by ticks. If n ticks found the CPU
// busy, chance changes n by about the square root of n.
func (b budget) tick() (relative float64, known bool) {
	hz, err := strconv.ParseFloat(b.Run.Environment[HzKey], 64)
	if err != nil || !b.CPUByTicks() {
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

// partsConfidence is the level of the interval whose half-width a part is. twoSided is the
// half-width of such an interval of normal noise, in standard deviations.
const (
	partsConfidence = 0.95
	twoSided        = 1.96
)

// edges returns the relative difference in length between the recorded window and the
// load's, the median over rounds. File transfers have no planned length of the window.
func (b budget) edges() (relative float64, known bool) {
	var differences []float64
	for _, s := range b.samples() {
		planned := float64(b.Run.Plan.Duration)
		if s.Slices != nil {
			planned = float64(len(s.Slices.Cycles)) * float64(b.Run.Plan.Slice)
		}
		if _, transfers := s.Metrics[result.Transfers]; !transfers && planned > 0 && s.Elapsed > 0 {
			differences = append(differences, math.Abs(float64(s.Elapsed)/planned-1))
		}
	}
	return stat.Median(differences), len(differences) > 0
}

// generator returns the part of a latency that the load generator caused: its wake-up after
// the kernel had received the response, and its late sends. network_time contains neither.
func (b budget) generator() (relative float64, known bool) {
	clock := b.at.Row().Clock
	suffix := strings.TrimPrefix(b.at.Metric, clock)
	headline := func(clock string) float64 { return b.Headline(b.at.With(clock+suffix), b.contender) }
	own := headline("service_time") - headline("network_time")
	switch clock {
	case "latency":
		if lag := headline("send_lag"); lag > 0 {
			own += lag
		}
	case "service_time":
	default:
		return 0, false
	}
	return max(0, own) / b.figure, !math.IsNaN(own)
}
