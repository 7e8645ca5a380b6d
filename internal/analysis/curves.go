package analysis

import (
	"cmp"
	"math"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/result"
)

// Curves returns a curve of percentiles for each pool.
func Curves(pools []pool) []Curve {
	list := []Curve{}
	for _, p := range pools {
		c := curve(p.merged)
		c.Contender, c.Kernel, c.Underlay, c.Step, c.Clock = p.Contender, p.Kernel, p.Underlay, p.Step, p.Clock
		list = append(list, c)
	}
	return list
}

// merge adds up histograms; the result can hold every value that any of them can hold.
func merge(list []*hdrhistogram.Histogram) *hdrhistogram.Histogram {
	lowest, highest, digits := int64(math.MaxInt64), int64(2), int64(1)
	for _, h := range list {
		lowest = min(lowest, max(1, h.LowestTrackableValue()))
		highest = max(highest, h.HighestTrackableValue(), h.Max())
		digits = max(digits, h.SignificantFigures())
	}
	merged := hdrhistogram.New(lowest, highest, int(digits))
	for _, h := range list {
		merged.Merge(h)
	}
	return merged
}

// curve returns the percentiles that have enough values beyond them; histograms hold
// nanoseconds.
func curve(h *hdrhistogram.Histogram) Curve {
	c := Curve{Count: h.TotalCount()}
	for _, p := range curvePercentiles() {
		if result.EnoughFor(p, c.Count) {
			c.Points = append(c.Points, CurvePoint{Percentile: p, Seconds: float64(h.ValueAtPercentile(p)) / 1e9})
		}
	}
	return c
}

// curvePercentiles returns percentiles for an axis of nines (90, 99, 99.9 …), eight for
// each nine, and the percentiles that reports name.
func curvePercentiles() []float64 {
	var list []float64
	for decade := 0; decade <= 5; decade++ {
		for _, step := range []float64{10, 7.5, 6, 5, 4, 3, 2, 1.5} {
			list = append(list, 100-step*math.Pow10(1-decade))
		}
	}
	for i, p := range list { // 99.9 and not 99.89999999999999
		list[i] = math.Round(p*1e9) / 1e9
	}
	for _, p := range result.Percentiles {
		list = append(list, p.Value)
	}
	slices.SortFunc(list, func(a, b float64) int { return cmp.Compare(a, b) })
	list = slices.Compact(list)
	return slices.DeleteFunc(list, func(p float64) bool { return p <= 0 || p > 99.999 })
}
