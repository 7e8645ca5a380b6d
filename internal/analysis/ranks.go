package analysis

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/stat"
)

// Rank is the rank of a contender among the contenders of a place.
type Rank struct {
	// Letters are the letters of the contender's groups; "a" is the group of the best
	// contender. Contenders that share a letter cannot be told apart. Groups overlap: a
	// contender between two others can be in the groups of both.
	Letters []string
	// Tier is for readers of reports without groups. Contenders are taken in the order of
	// their medians, the best first; one that can be told apart from a member of the
	// current tier begins the next tier.
	Tier int
}

// Ranks returns the ranks of the contenders of one place. Paired rounds are compared by
// stat.Apart. Unpaired rounds are compared pair by pair with a Mann–Whitney test and Holm's
// correction over the pairs that have enough rounds to show a difference. Either way the
// chance of any false difference is at most alpha. A contender with too few rounds to
// differ from any other has no rank: a single group of all contenders would look like a
// finding.
func (e *Evidence) Ranks(at FigureKey, contenders map[string]Series, better string) map[string]Rank {
	order := e.byMedian(contenders, better)
	p := e.pairs(order, contenders, e.Autocorrelation[at.ComparableSet].Inflation())
	apart := func(i, j int) bool { return p[i][j] <= e.Opt.Alpha }
	order, apart = onlyTestable(order, p, apart, len(order) == 1 && len(contenders[order[0]]) > 1)
	ranks := make(map[string]Rank, len(order))
	first, tier := 0, 1 // position of the tier's best member, number of the tier
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
			r.Letters = append(r.Letters, letter(k))
			ranks[order[member]] = r
		}
	}
	return ranks
}

// byMedian returns the contenders ordered by median, the best first.
func (e *Evidence) byMedian(contenders map[string]Series, better string) []string {
	order := e.OrderContenders(contenders)
	slices.SortStableFunc(order, func(a, b string) int {
		if better == "higher" {
			a, b = b, a
		}
		return cmp.Compare(stat.Median(contenders[a].Values()), stat.Median(contenders[b].Values()))
	})
	return order
}

// pairs returns the adjusted p values of all pairs, by position in order;
// stat.Untestable for a pair with too few rounds.
func (e *Evidence) pairs(order []string, contenders map[string]Series, inflation float64) [][]float64 {
	if e.Unpaired() {
		values := make([][]float64, len(order))
		for i, c := range order {
			values[i] = contenders[c].Values()
		}
		return e.RankTests.ComparePairs(values, e.Opt.Alpha)
	}
	all := map[int]bool{}
	for _, s := range contenders {
		for round := range s {
			all[round] = true
		}
	}
	return stat.ComparePairs(table(contenders, order, slices.Sorted(maps.Keys(all))), e.Opt.Alpha, inflation)
}

// onlyTestable leaves out the contenders of which every pair has too few rounds. The only
// contender of a place (alone) stays: with more than one round it is a group of its own.
func onlyTestable(order []string, p [][]float64, apart func(i, j int) bool, alone bool) ([]string, func(i, j int) bool) {
	var kept []int
	for i := range order {
		others := slices.Delete(slices.Clone(p[i]), i, i+1)
		if alone || slices.ContainsFunc(others, func(v float64) bool { return !math.IsNaN(v) }) {
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

// RoundsForRanks returns the least number of rounds that can tell that many contenders
// apart. With paired rounds the number is the same for two contenders and for many.
func RoundsForRanks(contenders int, unpaired bool, alpha float64) int {
	rounds := 1
	if contenders < 2 {
		return rounds
	}
	pairs, minimum := 1.0, stat.MinSignedRank
	if unpaired {
		pairs = float64(contenders*(contenders-1)) / 2
		minimum = func(n int) float64 { return stat.MinMannWhitney(n, n) }
	}
	for minimum(rounds)*pairs > alpha {
		rounds++
	}
	return rounds
}

// RoundsForContenders returns the default number of rounds for that many contenders: in four
// of five runs they tell two contenders apart that differ by two standard deviations of the
// noise of a round. More contenders need more rounds: with more pairs, chance differences
// become more likely.
func RoundsForContenders(contenders int) int { return stat.RoundsToTellApart(contenders) }
