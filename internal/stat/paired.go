package stat

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Ratios returns values divided by base for the keys that both have, in the order of the
// keys. ok is false if there is no such key. It is also false if a base is not positive or
// a value is negative: without that ratio, the others would be a biased selection.
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

// SignedRank returns the two-sided p of Wilcoxon's signed-rank test. The hypothesis is
// that the ratios' logarithms are symmetric about zero, so that contender and baseline
// could change places in every round. The distribution is exact up to 60 ratios, ties
// included (mid ranks), and normal beyond. Ratios of 1 are left out. A ratio of 0 is
// farther from 1 than every other ratio. The smallest possible p of n ratios is
// LeastSignedRank(n).
func SignedRank(ratios []float64) float64 {
	sizes := make([]float64, len(ratios)) // of the logarithms
	for i, ratio := range ratios {
		sizes[i] = math.Abs(math.Log(ratio))
	}
	ranks, _ := doubledRanks(sizes)
	sum, total, squares := 0, 0, 0.0 // sum of the ranks of ratios above 1, and of all
	used := ranks[:0]
	for i, rank := range ranks {
		if ratios[i] == 1 {
			continue
		}
		used = append(used, rank)
		total, squares = total+rank, squares+float64(rank)*float64(rank)
		if ratios[i] > 1 {
			sum += rank
		}
	}
	if total == 0 {
		return 1
	}
	distance := math.Abs(float64(2*sum - total))
	if len(used) > exactRanks {
		return normalP(distance / math.Sqrt(squares))
	}
	var far, all float64
	for s, ways := range signedSums(used) {
		all += ways
		if math.Abs(float64(2*s-total)) >= distance {
			far += ways
		}
	}
	return far / all
}

// signedSums returns, by sum, the number of subsets of the ranks with that sum.
func signedSums(ranks []int) []float64 {
	ways, total := []float64{1}, 0
	for _, rank := range ranks {
		ways = append(ways, make([]float64, rank)...)
		for sum := total; sum >= 0; sum-- {
			ways[sum+rank] += ways[sum]
		}
		total += rank
	}
	return ways
}

// MinSignedRank is the smallest p that n ratios can give: 2^(1-n).
func MinSignedRank(n int) float64 { return math.Ldexp(1, 1-max(n, 1)) }

// PairedShift returns by how much paired ratios differ from 1. The estimate is that of
// Hodges and Lehmann: the median of the geometric means of every two ratios and of each
// ratio alone (Walsh averages of the logarithms). The interval holds every x for which
// SignedRank does not reject the ratios divided by x, so interval and test never disagree.
// Low and High are NaN with too few ratios: fewer than 6 for 95 %.
func PairedShift(ratios []float64, confidence float64) Shift {
	n := len(ratios)
	if n == 0 {
		return Shift{math.NaN(), math.NaN(), math.NaN()}
	}
	walsh := make([]float64, 0, n*(n+1)/2)
	for i, a := range ratios {
		for _, b := range ratios[i:] {
			if a == b {
				walsh = append(walsh, a)
				continue
			}
			walsh = append(walsh, math.Sqrt(a)*math.Sqrt(b))
		}
	}
	slices.Sort(walsh)
	s := Shift{Low: math.NaN(), High: math.NaN()}
	s.Ratio = walsh[len(walsh)/2]
	if below := walsh[(len(walsh)-1)/2]; below != s.Ratio {
		s.Ratio = math.Sqrt(below) * math.Sqrt(s.Ratio)
	}
	if k := outermostWalsh(n, 1-confidence); k > 0 {
		s.Low, s.High = walsh[k-1], walsh[len(walsh)-k]
	}
	return s
}

// ComparePaired returns PairedShift and SignedRank of rounds whose noise may last into the
// next round. inflation (Serial.Inflation) widens the interval. p is that of the ratios
// after a shift that brings their middle nearer to 1 by the same factor, so the interval
// holds 1 if p is large.
func ComparePaired(ratios []float64, confidence, inflation float64) (s Shift, p float64) {
	s = PairedShift(ratios, confidence)
	nearer := slices.Clone(ratios)
	if toward := math.Pow(s.Ratio, 1-1/inflation); toward > 0 {
		for i := range nearer {
			nearer[i] /= toward
		}
	}
	return s.Widen(inflation), SignedRank(nearer)
}

// outermostWalsh returns the largest k for which the k-th smallest and the k-th largest
// Walsh average enclose the true centre with at least the confidence 1-alpha; 0 with too
// few values.
func outermostWalsh(n int, alpha float64) int {
	if n > exactRanks {
		f := float64(n)
		return max(0, int(f*(f+1)/4-math.Sqrt2*math.Erfinv(1-alpha)*math.Sqrt(f*(f+1)*(2*f+1)/24)))
	}
	ranks := make([]int, n)
	for i := range ranks {
		ranks[i] = i + 1
	}
	below, all := 0.0, math.Ldexp(1, n)
	for k, ways := range signedSums(ranks) {
		if below += ways; below/all > alpha/2 {
			return k
		}
	}
	return 0
}
