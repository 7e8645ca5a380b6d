package stat

import (
	"cmp"
	"math"
	"slices"
)

// exactRanks is the number of values up to which a rank test is exact. Beyond, the error
// of the normal approximation is smaller than any measurement could show.
const exactRanks = 60

// MannWhitney returns the two-sided p of the Mann–Whitney test. The hypothesis is that a
// and b come from one distribution; the alternative is that one side tends to be larger.
// Up to 60 values, p comes from the exact permutation distribution of the rank sum, ties
// included (mid ranks); without ties it agrees with golang.org/x/perf. If a side has no
// value, p is 1.
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

// ComparePairs tests every pair of independent samples for a difference. It returns p values in
// the form of the function Apart. Holm's method adjusts them for the pairs that have
// enough values for a p up to alpha after the adjustment (Tarone 1990). The p of the other
// pairs is Untestable.
func (t *RankTest) ComparePairs(samples [][]float64, alpha float64) (p [][]float64) {
	p = make([][]float64, len(samples))
	var pairs [][2]int
	var minimum, raw []float64
	for i := range samples {
		p[i] = slices.Repeat([]float64{Untestable}, len(samples))
		p[i][i] = 1
		for j := i + 1; j < len(samples); j++ {
			pairs, minimum = append(pairs, [2]int{i, j}), append(minimum, MinMannWhitney(len(samples[i]), len(samples[j])))
		}
	}
	tested := testable(minimum, alpha)
	for _, i := range tested {
		raw = append(raw, t.P(samples[pairs[i][0]], samples[pairs[i][1]]))
	}
	for k, adjusted := range Holm(raw) {
		a, b := pairs[tested[k]][0], pairs[tested[k]][1]
		p[a][b], p[b][a] = adjusted, adjusted
	}
	return p
}

// testable returns the indices of the tests that can reject after a correction for the
// tests returned (Tarone 1990). minimum is the smallest p that each test can give.
func testable(minimum []float64, alpha float64) []int {
	for k := 1; ; k++ {
		var tests []int
		for i, v := range minimum {
			if v*float64(k) <= alpha {
				tests = append(tests, i)
			}
		}
		if len(tests) <= k {
			return tests
		}
	}
}

// MinMannWhitney returns the smallest p that na values against nb values can give.
func MinMannWhitney(na, nb int) float64 {
	ways := 1.0 // to choose na of na+nb
	for i := 1; i <= na; i++ {
		ways *= float64(nb+i) / float64(i)
	}
	return min(1, 2/ways)
}

// doubledRanks returns twice the mid rank of every value, which is a whole number, and
// the sum of t³−t over the groups of t equal values.
func doubledRanks(values []float64) (ranks []int, ties float64) {
	order := indices(len(values))
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

// rankSums returns, by sum, the number of ways to choose n of the ranks with that sum.
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
			// The ranks are in ascending order, so no sum exceeds chosen*rank.
			for sum := min(largest, chosen*rank); sum >= rank; sum-- {
				ways[chosen][sum] += ways[chosen-1][sum-rank]
			}
		}
	}
	return ways[n]
}

// Holm returns p values adjusted for the number of tests, in the order of p. A caller that
// rejects if the adjusted value is at most alpha makes any false rejection with a chance of
// at most alpha.
func Holm(p []float64) []float64 {
	order := indices(len(p))
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(p[i], p[j]) })
	adjusted := make([]float64, len(p))
	highest := 0.0
	for done, i := range order {
		highest = max(highest, min(1, p[i]*float64(len(p)-done)))
		adjusted[i] = highest
	}
	return adjusted
}

// HolmTestable is Holm without the tests that cannot reject (Tarone 1990). Their p is 1.
// minimum is the smallest p that each test can give. It depends on the number of values only,
// so leaving out tests keeps the chance of any false rejection at alpha.
func HolmTestable(p, minimum []float64, alpha float64) []float64 {
	tested := testable(minimum, alpha)
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
