package stat

import (
	"math"

	"github.com/aclements/go-moremath/stats"
)

// This file knows what repeated values of one kind differ by, pooled over several kinds. It
// assumes normal noise of one size on the logarithmic scale, which few values force.

// Spread is how much values of one kind differ, pooled over kinds.
type Spread struct {
	Within float64 // standard deviation of the logarithms within a kind, about the relative one
	// Different is the smallest difference, as a logarithm, of two kinds' medians (paired: of
	// the median ratio within pairs) that chance would not give any pair of kinds in 19 of 20
	// runs.
	Different float64
}

// PooledSpread returns the spread of the rows of values, each of one kind. With paired, value
// i of all rows was measured together, and what all have in common is left out. ok is false
// without two values of a kind, or if a value is not positive.
func PooledSpread(rows [][]float64, paired bool) (s Spread, ok bool) {
	var squares, values float64
	var logs [][]float64
	for _, row := range rows {
		own := make([]float64, len(row))
		for i, v := range row {
			if !(v > 0) {
				return Spread{}, false
			}
			own[i] = math.Log(v)
		}
		logs = append(logs, own)
	}
	free := 0
	if paired {
		kept := logs[:0]
		for _, row := range logs {
			if len(row) == len(logs[0]) {
				kept = append(kept, row)
			}
		}
		logs = kept
		if len(logs) < 2 {
			return Spread{}, false
		}
		for i := range logs[0] {
			column := make([]float64, len(logs))
			for k := range logs {
				column[k] = logs[k][i]
			}
			center(column)
			for k := range logs {
				logs[k][i] = column[k]
			}
		}
		free = -(len(logs[0]) - 1)
	}
	for _, row := range logs {
		if len(row) < 2 {
			continue
		}
		center(row)
		for _, v := range row {
			squares += v * v
		}
		free += len(row) - 1
		values += float64(len(row))
	}
	if free < 1 || squares == 0 || len(logs) < 1 {
		return Spread{}, false
	}
	s = Spread{Within: math.Sqrt(squares / float64(free))}
	each := values / float64(len(logs))                      // values a kind
	median := math.Sqrt(1 + (math.Pi/2-1)*(1-1/each))        // the median's error by the mean's, from above
	pairs := math.Max(1, float64(len(logs)*(len(logs)-1))/2) // Bonferroni over all pairs
	s.Different = studentQuantile(1-0.025/pairs, float64(free)) * s.Within * median * math.Sqrt(2/each)
	return s, true
}

// studentQuantile returns the quantile of Student's t distribution for p above 1/2.
func studentQuantile(p, free float64) float64 {
	if free > 1e4 { // the library's fraction does not converge far above; the normal is as near as 1e-4
		return math.Sqrt2 * math.Erfinv(2*p-1)
	}
	return stats.InvCDF(stats.TDist{V: free})(p)
}
