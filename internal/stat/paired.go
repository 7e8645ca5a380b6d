package stat

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

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

// SignedRank is the two-sided p of Wilcoxon's signed-rank test: the hypothesis
// is that the ratios' logarithms are symmetric about zero, so that contender and
// baseline could change places in every round. The distribution is exact up to 60
// ratios, ties included (mid ranks), and normal beyond. A ratio of 1 speaks for
// neither side. A ratio of 0 is further from 1 than every other. The smallest
// possible p of n ratios is LeastSignedRank(n).
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

// signedSums counts, for every sum, the subsets of the ranks that give it.
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

// LeastSignedRank is the smallest p that n ratios can give: 2^(1-n).
func LeastSignedRank(n int) float64 { return math.Ldexp(1, 1-max(n, 1)) }

// PairedShift is by how much paired ratios differ from 1. The estimate is Hodges and
// Lehmann's: the median of the geometric means of every two ratios and of each
// ratio alone (Walsh averages of the logarithms). The interval holds the ratios by
// which all values could be divided without SignedRank telling them from 1, so that
// interval and test never disagree. Low and High are NaN with too few ratios: fewer
// than 6 for 95 %.
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

// ComparePaired is PairedShift and SignedRank of rounds whose noise may last into the next:
// the interval is widened by inflation, which is that of Serially, and p is that of ratios
// whose middle is by so many times nearer to 1. So the interval holds 1 where p is large.
func ComparePaired(ratios []float64, confidence, inflation float64) (s Shift, p float64) {
	s = PairedShift(ratios, confidence)
	nearer := slices.Clone(ratios)
	if toward := math.Pow(s.Ratio, 1-1/inflation); toward > 0 {
		for i := range nearer {
			nearer[i] /= toward
		}
	}
	return s.Widened(inflation), SignedRank(nearer)
}

// outermostWalsh is k such that the k-th smallest and the k-th largest Walsh
// average hold the true centre with at least the confidence 1-alpha; 0 with too
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
