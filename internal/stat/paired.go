package stat

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// exactFlips is the number of pairs up to which all sign flips are tried.
const exactFlips = 12

// Ratios are values over base for the keys that both have, in the order of
// the keys. ok is false when there is none, or when one can't be formed
// because its base is not positive or its value negative: leaving it out
// would bend the rest.
func Ratios[K cmp.Ordered](values, base map[K]float64) (ratios []float64, ok bool) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		b, both := base[key]
		if !both {
			continue
		}
		if b <= 0 || values[key] < 0 {
			return nil, false
		}
		ratios = append(ratios, values[key]/b)
	}
	return ratios, len(ratios) > 0
}

// SignFlip is the two-sided p of the hypothesis that the ratios' logarithms
// are symmetric about zero, i.e. that contender and baseline could change
// places in every round: the share of all flips of their signs whose sum is at
// least as far from zero. Exact up to 12 ratios, normal beyond. The smallest
// possible p is 2^(1-n). A ratio of zero is as far from one as can be told:
// it takes the largest distance among the others.
func SignFlip(ratios []float64) float64 {
	logs := make([]float64, 0, len(ratios))
	farthest := 0.0
	for _, ratio := range ratios {
		if ratio > 0 {
			logs = append(logs, math.Log(ratio))
			farthest = max(farthest, math.Abs(math.Log(ratio)))
		}
	}
	for len(logs) < len(ratios) {
		logs = append(logs, -max(farthest, 1))
	}
	var sum, squares, size float64
	for _, l := range logs {
		sum, squares, size = sum+l, squares+l*l, size+math.Abs(l)
	}
	if size == 0 {
		return 1
	}
	if len(logs) > exactFlips {
		return normalP(sum / math.Sqrt(squares))
	}
	limit := math.Abs(sum) - 1e-12*size // rounding must not hide a tie
	far, all := 0, 1<<len(logs)
	for flips := range all {
		s := 0.0
		for i, l := range logs {
			if flips>>i&1 == 1 {
				l = -l
			}
			s += l
		}
		if math.Abs(s) >= limit {
			far++
		}
	}
	return float64(far) / float64(all)
}
