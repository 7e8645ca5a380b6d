package stat

import "math"

// Uneven tests whether an event that happened counts[i] times in tries[i] tries had the
// same chance for every i. p is exact: of all ways to distribute the same number of events
// over the tries, the share of ways whose Pearson statistic is at least as large. least is
// the smallest p that any such way gives.
func Uneven(counts, tries []int) (p, least float64) {
	total, all, multiple := 0, 0, 1
	for i, n := range tries {
		total, all = total+counts[i], all+n
		if n > 0 {
			multiple = leastCommonMultiple(multiple, n)
		}
	}
	if total == 0 || total == all {
		return 1, 1
	}
	// For given totals, Pearson's statistic grows with the sum of counts²/tries, which is a
	// whole number times 1/multiple.
	type state struct{ happened, squares int }
	ways := map[state]float64{{}: 1}
	observed := 0
	for i, n := range tries {
		if n == 0 {
			continue
		}
		observed += counts[i] * counts[i] * (multiple / n)
		next := make(map[state]float64, len(ways)*2)
		for s, w := range ways {
			for k := 0; k <= min(n, total-s.happened); k++ {
				next[state{s.happened + k, s.squares + k*k*(multiple/n)}] += w * choose(n, k)
			}
		}
		ways = next
	}
	most, every := 0, 0.0
	for s, w := range ways {
		if s.happened == total {
			most, every = max(most, s.squares), every+w
		}
	}
	for s, w := range ways {
		if s.happened == total && s.squares >= observed {
			p += w / every
		}
	}
	return min(1, p), ways[state{total, most}] / every
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
