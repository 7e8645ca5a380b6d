package stat

import (
	"maps"
	"math"
	"slices"
)

// trimmed is the share of values left out at each end of a trimmed mean: it takes
// what one hiccup does and keeps 95 % of the mean's precision with normal noise.
const trimmed = 0.2

// Cycled are positive values that several contenders took in turns: by contender, by
// cycle.
type Cycled map[string]map[int]float64

// Levels returns one value a contender, such that the quotient of two is that of a
// typical cycle: what a cycle did to all is taken out before the mean of the
// logarithms over cycles is taken, trimmed of a fifth at each end. Only cycles that
// all contenders have count; without any, or with a value that is not positive,
// Levels returns nil.
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
		var of []float64
		for i := range names {
			of = append(of, logs[i][k]-middle[i])
		}
		effects[k] = Median(of)
	}
	// A contender that the cycles do nothing to, as one behind a capped link, keeps its own
	// level.
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

// trimmedMean is the mean without the smallest and the largest fifth; the values
// are sorted by it.
func trimmedMean(values []float64) float64 {
	slices.Sort(values)
	away := int(trimmed * float64(len(values)))
	kept, sum := values[away:len(values)-away], 0.0
	for _, v := range kept {
		sum += v
	}
	return sum / float64(len(kept))
}
