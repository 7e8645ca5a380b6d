package stat

import "math"

// CompareCounts tests whether an event that happened counts[i] times in tries[i] tries had the
// same chance for every i. p is exact: of all ways to distribute the same number of events
// over the tries, the share of ways whose Pearson statistic is at least as large. minimum is
// the smallest p that any such way gives. If there are too many ways to go through, p is
// that of the chi-squared distribution, and minimum is 0.
func CompareCounts(counts, tries []int) (p, minimum float64) {
	total, all, multiple := 0, 0, 1
	for i, n := range tries {
		total, all = total+counts[i], all+n
		if n > 0 {
			multiple = min(leastCommonMultiple(multiple, n), maxMultiple)
		}
	}
	if total == 0 || total == all {
		return 1, 1
	}
	if multiple == maxMultiple {
		return compareCountsApproximately(counts, tries, float64(total)/float64(all)), 0
	}
	// For given totals, Pearson's statistic grows with the sum of counts²/tries, which is a
	// whole number times 1/multiple.
	type state struct{ happened, squares int }
	ways := map[state]float64{{}: 1}
	observed, work := 0, 0
	for i, n := range tries {
		if n == 0 {
			continue
		}
		choices := make([]float64, min(n, total)+1)
		for k := range choices {
			choices[k] = choose(n, k)
		}
		observed += counts[i] * counts[i] * (multiple / n)
		next := make(map[state]float64, len(ways)*2)
		for s, w := range ways {
			if work += min(n, total-s.happened); work > maxWays || n > maxTries {
				return compareCountsApproximately(counts, tries, float64(total)/float64(all)), 0
			}
			for k := 0; k <= min(n, total-s.happened); k++ {
				next[state{s.happened + k, s.squares + k*k*(multiple/n)}] += w * choices[k]
			}
		}
		ways = next
	}
	maximum, every := 0, 0.0
	for s, w := range ways {
		if s.happened == total {
			maximum, every = max(maximum, s.squares), every+w
		}
	}
	for s, w := range ways {
		if s.happened == total && s.squares >= observed {
			p += w / every
		}
	}
	return min(1, p), ways[state{total, maximum}] / every
}

// Uneven is exact up to these numbers: of ways, for the time that they take, of tries, for
// the largest number that a float64 holds, and of their common multiple, for an int.
const (
	maxWays     = 2_000_000
	maxTries    = 1000
	maxMultiple = 1 << 30
)

// compareCountsApproximately returns the p of Uneven by Pearson's statistic, in the approximation
// of the chi-squared distribution by Wilson and Hilferty (1931).
func compareCountsApproximately(counts, tries []int, chance float64) float64 {
	statistic, freedom := 0.0, -1.0
	for i, n := range tries {
		if n == 0 {
			continue
		}
		distance := float64(counts[i]) - float64(n)*chance
		statistic += distance * distance / (float64(n) * chance * (1 - chance))
		freedom++
	}
	if freedom < 1 {
		return 1
	}
	spread := 2 / (9 * freedom)
	z := (math.Cbrt(statistic/freedom) - (1 - spread)) / math.Sqrt(spread)
	return math.Erfc(z/math.Sqrt2) / 2
}

func leastCommonMultiple(a, b int) int {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}

// choose returns the number of ways to choose k things of n.
func choose(n, k int) float64 {
	ways := 1.0
	for i := 1; i <= k; i++ {
		ways = ways * float64(n-k+i) / float64(i)
	}
	return math.Round(ways)
}
