package analysis

import (
	"cmp"
	"slices"

	"github.com/cnibench/cnibench/internal/stat"
)

// tiers ranks the contenders of one place: from the best median on, a
// contender opens a new tier when it can be told apart from any member of the
// current one. Comparing with the tier's leader alone would let one noisy
// leader hold together what is fully apart. Members are the best of many and
// so extremes by choice; Holm's correction is therefore over all pairs of the
// metric, each compared by a Mann–Whitney test. Rounds too few for any pair to
// be told apart give no tiers: one tier of all would look like a finding.
func (e *Evidence) Tiers(contenders map[string]Series, better string) map[string]int {
	order := e.Ordered(contenders)
	values := make(map[string][]float64, len(order))
	medians := make(map[string]float64, len(order))
	for _, c := range order {
		values[c] = contenders[c].Values()
		medians[c] = stat.Median(values[c])
	}
	slices.SortStableFunc(order, func(a, b string) int {
		if better == "higher" {
			a, b = b, a
		}
		return cmp.Compare(medians[a], medians[b])
	})

	apart, can := e.apart(order, values)
	if !can {
		return nil
	}
	tier := make(map[string]int, len(order))
	first, current := 0, 1 // the tier's best member and its number
	for i, c := range order {
		for member := first; member < i; member++ {
			if apart[[2]int{member, i}] {
				first, current = i, current+1
				break
			}
		}
		tier[c] = current
	}
	return tier
}

// apart are the pairs of positions that can be told apart; can is false where
// the rounds are too few to tell any, whatever the values.
func (e *Evidence) apart(order []string, values map[string][]float64) (apart map[[2]int]bool, can bool) {
	var pairs [][2]int
	least := 1.0
	for i := range order {
		for j := i + 1; j < len(order); j++ {
			pairs = append(pairs, [2]int{i, j})
			least = min(least, stat.LeastMannWhitney(len(values[order[i]]), len(values[order[j]])))
		}
	}
	if len(pairs) > 0 && least*float64(len(pairs)) > e.Opt.Alpha {
		return nil, false
	}
	apart = map[[2]int]bool{}
	p := make([]float64, len(pairs))
	for i, pair := range pairs {
		p[i] = e.Ranks.P(values[order[pair[0]]], values[order[pair[1]]])
	}
	for i, adjusted := range stat.Holm(p) {
		apart[pairs[i]] = adjusted <= e.Opt.Alpha
	}
	return apart, true
}

// roundsForTiers is how many rounds it takes before n contenders can be told
// apart at all.
func RoundsForTiers(contenders int, alpha float64) int {
	pairs := float64(contenders*(contenders-1)) / 2
	rounds := 1
	for stat.LeastMannWhitney(rounds, rounds)*pairs > alpha {
		rounds++
	}
	return rounds
}
