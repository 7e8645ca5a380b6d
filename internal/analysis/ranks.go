package analysis

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/stat"
)

// Rank is where a contender stands among the others of a place.
type Rank struct {
	// Groups are the letters of the groups that the contender is in, "a" the group of
	// the best one. Contenders that share a letter cannot be told apart. A contender
	// between two others can be in the group of each, so groups overlap.
	Groups []string
	// Tier is for readers of reports without groups: from the best median on, a
	// contender that can be told apart from any member of the tier opens the next one.
	Tier int
}

// Ranks tells the contenders of one place apart. Rounds are paired: stat.Apart. Where
// rounds of one number share nothing, every pair is compared by a Mann–Whitney test,
// with Holm's correction over the pairs that have rounds enough for any difference.
// Either way the chance of any false difference is at most alpha. A contender that no
// number of values would tell from any other has no rank: one group of all would look
// like a finding.
func (e *Evidence) Ranks(contenders map[string]Series, better string) map[string]Rank {
	order := e.byMedian(contenders, better)
	p := e.pairs(order, contenders)
	apart := func(i, j int) bool { return p[i][j] <= e.Opt.Alpha }
	order, apart = onlyTestable(order, p, apart)
	ranks := make(map[string]Rank, len(order))
	first, tier := 0, 1 // the tier's best member and its number
	for i, c := range order {
		for member := first; member < i; member++ {
			if apart(member, i) {
				first, tier = i, tier+1
				break
			}
		}
		ranks[c] = Rank{Tier: tier}
	}
	for k, group := range stat.Groups(len(order), apart) {
		for _, member := range group {
			r := ranks[order[member]]
			r.Groups = append(r.Groups, letter(k))
			ranks[order[member]] = r
		}
	}
	return ranks
}

// byMedian are the contenders from the best median on.
func (e *Evidence) byMedian(contenders map[string]Series, better string) []string {
	order := e.Ordered(contenders)
	slices.SortStableFunc(order, func(a, b string) int {
		if better == "higher" {
			a, b = b, a
		}
		return cmp.Compare(stat.Median(contenders[a].Values()), stat.Median(contenders[b].Values()))
	})
	return order
}

// pairs are the adjusted p values of all pairs, by position in order; stat.Untestable
// where a pair has too few rounds.
func (e *Evidence) pairs(order []string, contenders map[string]Series) [][]float64 {
	if e.Unpaired() {
		values := make([][]float64, len(order))
		for i, c := range order {
			values[i] = contenders[c].Values()
		}
		return e.RankTests.Apart(values, e.Opt.Alpha)
	}
	all := map[int]bool{}
	for _, s := range contenders {
		for round := range s {
			all[round] = true
		}
	}
	rounds := slices.Sorted(maps.Keys(all))
	series := make([][]float64, len(order))
	for i, c := range order {
		for _, round := range rounds {
			v, measured := contenders[c][round]
			if !measured {
				v = math.NaN()
			}
			series[i] = append(series[i], v)
		}
	}
	return stat.Apart(series, e.Opt.Alpha)
}

// onlyTestable leaves out the contenders that no pair can tell apart. One that
// has the place for itself stays.
func onlyTestable(order []string, p [][]float64, apart func(i, j int) bool) ([]string, func(i, j int) bool) {
	var kept []int
	for i := range order {
		others := slices.Delete(slices.Clone(p[i]), i, i+1)
		if len(order) == 1 || slices.ContainsFunc(others, func(v float64) bool { return !math.IsNaN(v) }) {
			kept = append(kept, i)
		}
	}
	names := make([]string, len(kept))
	for k, i := range kept {
		names[k] = order[i]
	}
	return names, func(i, j int) bool { return apart(kept[i], kept[j]) }
}

// letter names the k-th group: a to z, then aa, ab and so on.
func letter(k int) string {
	if k < 26 {
		return string(rune('a' + k))
	}
	return letter(k/26-1) + letter(k%26)
}

// RoundsForRanks is how many rounds it takes before so many contenders can be told
// apart at all. Paired rounds do not need more of them for more contenders.
func RoundsForRanks(contenders int, unpaired bool, alpha float64) int {
	rounds := 1
	if contenders < 2 {
		return rounds
	}
	pairs, least := 1.0, stat.LeastSignedRank
	if unpaired {
		pairs = float64(contenders*(contenders-1)) / 2
		least = func(n int) float64 { return stat.LeastMannWhitney(n, n) }
	}
	for least(rounds)*pairs > alpha {
		rounds++
	}
	return rounds
}

// RoundsForContenders is how many rounds a run of so many contenders takes unless told
// otherwise: enough to tell two apart, four times of five, that lie two standard deviations
// of what a round does to one of them apart. More contenders are more pairs, and each pair
// needs more to be no chance.
func RoundsForContenders(contenders int) int { return stat.RoundsToTellApart(contenders) }
