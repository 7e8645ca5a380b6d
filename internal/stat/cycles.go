package stat

import (
	"maps"
	"math"
	"slices"
)

// trimmed is the share of values left out at each end of a trimmed mean. It removes the
// effect of a single disturbance, and keeps 95 % of the mean's precision if noise is normal.
const trimmed = 0.2

// Cycled holds values of contenders that ran in turns, by contender and cycle. A value is
// positive, or 0 if nothing was received.
type Cycled map[string]map[int]float64

// Levels returns one value for each contender; the quotient of two values is that of a
// typical cycle. Levels subtracts from the logarithms what a cycle did to all contenders,
// and then takes each contender's mean over the cycles, without a fifth of the values at
// each end. Only cycles that all contenders have count. Where contenders took turns in
// blocks, that is done in each block, and the quotients to the contenders that were in all
// blocks are kept. Levels returns nil if some contenders have no cycle in common and none
// was in all blocks, if more of a contender's values are 0 than are left out at one end, or
// if a value is negative or not finite.
func (c Cycled) Levels() map[string]float64 {
	throughout, blocks := c.blocks()
	if len(blocks) < 2 {
		return c.levels(slices.Sorted(maps.Keys(c)))
	}
	if throughout == nil {
		return nil
	}
	var inBlock []map[string]float64
	middle := map[string]float64{} // of the logarithms of throughout's levels, over the blocks
	for _, block := range blocks {
		levels := c.levels(slices.Concat(throughout, block))
		if levels == nil {
			return nil
		}
		inBlock = append(inBlock, levels)
		for _, name := range throughout {
			middle[name] += math.Log(levels[name]) / float64(len(blocks))
		}
	}
	all := map[string]float64{}
	for _, name := range throughout {
		all[name] = math.Exp(middle[name])
	}
	for i, block := range blocks {
		shift := 0.0
		for _, name := range throughout {
			shift += (middle[name] - math.Log(inBlock[i][name])) / float64(len(throughout))
		}
		for _, name := range block {
			all[name] = inBlock[i][name] * math.Exp(shift)
		}
	}
	return all
}

// blocks returns the contenders that have cycles in common with every other one, and the
// rest by the cycles that they have in common.
func (c Cycled) blocks() (throughout []string, blocks [][]string) {
	names := slices.Sorted(maps.Keys(c))
	meet := func(a, b string) bool {
		for cycle := range c[a] {
			if _, has := c[b][cycle]; has {
				return true
			}
		}
		return false
	}
	for _, name := range names {
		if !slices.ContainsFunc(names, func(other string) bool { return !meet(name, other) }) {
			throughout = append(throughout, name)
			continue
		}
		i := slices.IndexFunc(blocks, func(block []string) bool { return meet(name, block[0]) })
		if i < 0 {
			blocks = append(blocks, []string{name})
		} else {
			blocks[i] = append(blocks[i], name)
		}
	}
	return throughout, blocks
}

// levels returns the levels of contenders that took turns in the same block, by the cycles
// that they all have.
func (c Cycled) levels(names []string) map[string]float64 {
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
	// By contender, logarithms and their middle. The logarithm of 0 is -Inf: it is among the
	// smallest fifth, and says nothing of its cycle's effect.
	middle, logs := make([]float64, len(names)), make([][]float64, len(names))
	for i, name := range names {
		zeros := 0
		for _, cycle := range cycles {
			v := c[name][cycle]
			if !(v >= 0) || math.IsInf(v, 0) {
				return nil
			}
			if v == 0 {
				zeros++
			}
			logs[i] = append(logs[i], math.Log(v))
		}
		if zeros > cutOf(len(cycles)) {
			return nil
		}
		middle[i] = Median(logs[i])
	}
	effects := make([]float64, len(cycles)) // 0 if no contender received anything
	for k := range cycles {
		var deviations []float64
		for i := range names {
			if !math.IsInf(logs[i][k], -1) {
				deviations = append(deviations, logs[i][k]-middle[i])
			}
		}
		if len(deviations) > 0 {
			effects[k] = Median(deviations)
		}
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
	cut := cutOf(len(values))
	return Mean(values[cut : len(values)-cut])
}

// cutOf returns how many of n values a trimmed mean leaves out at each end.
func cutOf(n int) int { return int(trimmed * float64(n)) }
