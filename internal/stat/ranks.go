package stat

import (
	"cmp"
	"math"
	"slices"
)

// exactRanks is the number of values up to which a rank test is exact;
// beyond, the normal approximation is closer than anyone measures.
const exactRanks = 60

// MannWhitney is the two-sided p of the hypothesis that a and b come from one
// distribution, against that one tends to be larger. Up to 60 values it is
// the exact permutation distribution of the rank sum, ties included (mid
// ranks); it agrees with golang.org/x/perf where there are no ties. No values
// on a side tell nothing: p is 1.
func MannWhitney(a, b []float64) float64 { return new(RankTest).P(a, b) }

// RankTest makes many Mann–Whitney tests and remembers the distributions that
// they share. The zero value is ready; it is for one goroutine at a time.
type RankTest struct {
	untied map[[2]int][]float64 // ways by doubled rank sum, by the numbers of values
}

// P is MannWhitney of a and b.
func (t *RankTest) P(a, b []float64) float64 {
	if len(a) == 0 || len(b) == 0 {
		return 1
	}
	ranks, ties := doubledRanks(slices.Concat(a, b))
	sum := 0
	for _, rank := range ranks[:len(a)] {
		sum += rank
	}
	n, na, nb := float64(len(ranks)), float64(len(a)), float64(len(b))
	mean := na * (n + 1) // of the doubled rank sum
	distance := math.Abs(float64(sum) - mean)
	if len(ranks) > exactRanks {
		variance := na * nb / 3 * (n + 1 - ties/(n*(n-1)))
		if variance <= 0 {
			return 1
		}
		return normalP(math.Max(0, distance-1) / math.Sqrt(variance))
	}
	var far, all float64
	for s, ways := range t.sums(ranks, len(a), ties > 0) {
		all += ways
		if math.Abs(float64(s)-mean) >= distance {
			far += ways
		}
	}
	return min(1, far/all)
}

func (t *RankTest) sums(ranks []int, n int, tied bool) []float64 {
	if tied {
		return rankSums(ranks, n)
	}
	key := [2]int{n, len(ranks)}
	if t.untied[key] == nil {
		if t.untied == nil {
			t.untied = map[[2]int][]float64{}
		}
		t.untied[key] = rankSums(ranks, n)
	}
	return t.untied[key]
}

// Apart tests every pair of samples whose values are no pairs, and gives the p
// values as the function Apart does: adjusted by Holm over those pairs that have
// values enough for a p up to alpha after the adjustment (Tarone 1990), Untestable
// for the others.
func (t *RankTest) Apart(samples [][]float64, alpha float64) (p [][]float64) {
	p = make([][]float64, len(samples))
	var pairs [][2]int
	var least, raw []float64
	for i := range samples {
		p[i] = slices.Repeat([]float64{Untestable}, len(samples))
		p[i][i] = 1
		for j := i + 1; j < len(samples); j++ {
			pairs, least = append(pairs, [2]int{i, j}), append(least, LeastMannWhitney(len(samples[i]), len(samples[j])))
		}
	}
	// Tarone's number: the fewest tests k of which no more than k could pass alpha/k.
	testable := func(k int) (n int) {
		for _, l := range least {
			if l*float64(k) <= alpha {
				n++
			}
		}
		return n
	}
	k := 1
	for testable(k) > k {
		k++
	}
	kept := pairs[:0]
	for i, pair := range pairs {
		if least[i]*float64(k) <= alpha {
			kept, raw = append(kept, pair), append(raw, t.P(samples[pair[0]], samples[pair[1]]))
		}
	}
	for i, adjusted := range Holm(raw) {
		a, b := kept[i][0], kept[i][1]
		p[a][b], p[b][a] = adjusted, adjusted
	}
	return p
}

// LeastMannWhitney is the smallest p that na against nb values can give.
func LeastMannWhitney(na, nb int) float64 {
	ways := 1.0 // to choose na of na+nb
	for i := 1; i <= na; i++ {
		ways *= float64(nb+i) / float64(i)
	}
	return min(1, 2/ways)
}

// doubledRanks gives every value twice its mid rank, a whole number, and the
// sum of t³−t over the groups of t equal values.
func doubledRanks(values []float64) (ranks []int, ties float64) {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(values[i], values[j]) })
	ranks = make([]int, len(values))
	for first := 0; first < len(order); {
		last := first
		for last+1 < len(order) && values[order[last+1]] == values[order[first]] {
			last++
		}
		for _, i := range order[first : last+1] {
			ranks[i] = first + last + 2
		}
		t := float64(last - first + 1)
		ties += t*t*t - t
		first = last + 1
	}
	return ranks, ties
}

// rankSums counts, for every sum, the ways to choose n of the ranks that give
// it.
func rankSums(ranks []int, n int) []float64 {
	ranks = slices.Sorted(slices.Values(ranks))
	largest := 0
	for _, rank := range ranks[len(ranks)-n:] {
		largest += rank
	}
	ways := make([][]float64, n+1) // by number chosen, by sum
	for chosen := range ways {
		ways[chosen] = make([]float64, largest+1)
	}
	ways[0][0] = 1
	for i, rank := range ranks {
		for chosen := min(n, i+1); chosen >= 1; chosen-- {
			// The ranks so far are the smallest, so no sum exceeds this.
			for sum := min(largest, chosen*rank); sum >= rank; sum-- {
				ways[chosen][sum] += ways[chosen-1][sum-rank]
			}
		}
	}
	return ways[n]
}

// Holm adjusts p values for having made all these comparisons: rejecting
// where the adjusted value is at most alpha keeps the chance of any false
// rejection at most alpha. The order is kept.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(p[i], p[j]) })
	adjusted := make([]float64, len(p))
	highest := 0.0
	for done, i := range order {
		highest = max(highest, min(1, p[i]*float64(len(p)-done)))
		adjusted[i] = highest
	}
	return adjusted
}

// HolmTestable is Holm's correction without the tests that cannot reject
// (Tarone 1990). least is the smallest p that each test can give, whatever the
// values: it follows from the number of values alone, so that leaving a test
// out by it keeps the chance of any false rejection at alpha. The p of a test
// left out is 1.
func HolmTestable(p, least []float64, alpha float64) []float64 {
	var tested []int
	for k := 1; ; k++ {
		tested = tested[:0]
		for i, v := range least {
			if v*float64(k) <= alpha {
				tested = append(tested, i)
			}
		}
		if len(tested) <= k {
			break
		}
	}
	adjusted, chosen := make([]float64, len(p)), make([]float64, len(tested))
	for i := range adjusted {
		adjusted[i] = 1
	}
	for i, t := range tested {
		chosen[i] = p[t]
	}
	for i, v := range Holm(chosen) {
		adjusted[tested[i]] = v
	}
	return adjusted
}
