package stat

import (
	"maps"
	"math"
	"slices"
)

// trimmed is the share of values left out at each end of a trimmed mean. It removes the
// effect of a single disturbance, and keeps 95 % of the mean's precision if noise is normal.
const trimmed = 0.2

// Cycled holds positive values of contenders that ran in turns, by contender and cycle.
type Cycled map[string]map[int]float64

// Levels returns one value for each contender; the quotient of two values is that of a
// typical cycle. Levels subtracts from the logarithms what a cycle did to all contenders,
// and then takes each contender's mean over the cycles, without a fifth of the values at
// each end. Only cycles that all contenders have count. Levels returns nil if there is no
// such cycle, or if a value is not positive.
func (c Cycled) Levels() map[string]float64 {
	names := slices.Sorted(maps.Keys(c))
	if len(names) == 0 {
		return nil
	}
	var cycles []int
	for cycle := range c[names[0]] {
		if !slices.ContainsFunc(names, func(name string) bool { _, has := c[name][cycle]; return !has }) {
			cycles = append(cycles, cycle)
		}
	}
	slices.Sort(cycles)
	if len(cycles) == 0 {
		return nil
	}
	// By contender, logarithms less the contender's own middle.
	middle, logs := make([]float64, len(names)), make([][]float64, len(names))
	for i, name := range names {
		for _, cycle := range cycles {
			v := c[name][cycle]
			if !(v > 0) || math.IsInf(v, 0) {
				return nil
			}
			logs[i] = append(logs[i], math.Log(v))
		}
		middle[i] = Median(logs[i])
	}
	effects := make([]float64, len(cycles))
	for k := range cycles {
		var deviations []float64
		for i := range names {
			deviations = append(deviations, logs[i][k]-middle[i])
		}
		effects[k] = Median(deviations)
	}
	// Only the deviation from the typical effect is subtracted. So a contender that no cycle
	// affects, for example behind a capped link, keeps its own level.
	typical := trimmedMean(slices.Clone(effects))
	levels := map[string]float64{}
	for i, name := range names {
		left := make([]float64, len(cycles))
		for k := range cycles {
			left[k] = logs[i][k] - (effects[k] - typical)
		}
		levels[name] = math.Exp(trimmedMean(left))
	}
	return levels
}

// trimmedMean sorts values, and returns their mean without the smallest and the largest
// fifth.
func trimmedMean(values []float64) float64 {
	slices.Sort(values)
	cut := int(trimmed * float64(len(values)))
	return Mean(values[cut : len(values)-cut])
}
