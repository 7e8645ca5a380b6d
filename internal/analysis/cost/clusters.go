package cost

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// This file finds groups of contenders that resemble each other at a step, in
// goodput, CPU by goodput and memory.

const (
	minMembers    = 4    // fewest contenders for which groups are formed
	minRounds     = 3    // fewest rounds from which resamples are drawn
	maxClusters   = 6    // largest number of groups that is tried
	minSilhouette = 0.5  // with less, groups may be due to chance (Kaufman and Rousseeuw: "reasonable" from 0.5)
	minAgreement  = 0.8  // least mean of the adjusted Rand index over the resamples
	resamples     = 100  // how often rounds are resampled
	maxNoise      = 0.5  // largest standard error of a contender's median, as a share of the spread between contenders
	medianError   = 1.25 // standard error of a median divided by that of a mean, for normal values
)

// markClusters numbers the groups of a step's contenders, the group with the best goodput
// first. It sets no numbers if no number of groups has a good silhouette, or if resampled
// rounds give different groups. The baseline is left out: it is no pod network to choose,
// and it is so far from the others that they would all be one group.
func markClusters(e *analysis.Evidence, at analysis.FigureKey, here []analysis.Efficiency) {
	var members []int // of here
	for i := range here {
		if here[i].Contender != e.Run.Baseline && !e.Lossy(at, here[i].Contender) {
			members = append(members, i)
		}
	}
	var tables [][]analysis.Series // by feature, by member
	for _, feature := range result.WithRole(result.Grouping) {
		if column := logsOf(e, at.With(feature), here, members); column != nil {
			tables = append(tables, column)
		}
	}
	if len(members) < minMembers || len(tables) == 0 {
		return
	}
	rounds := e.Figures[at][here[members[0]].Contender].Rounds()
	if len(rounds) < minRounds {
		return
	}
	all := slices.Repeat([][]int{rounds}, len(members))
	labels, good := bestClusters(coordinates(tables, all))
	if !good || agreement(tables, rounds, labels, e.Unpaired()) < minAgreement {
		return
	}
	byGoodput := slices.Clone(members)
	slices.SortStableFunc(byGoodput, func(a, b int) int { return cmp.Compare(here[b].Goodput.Median, here[a].Goodput.Median) })
	numbers := map[int]int{}
	for _, i := range byGoodput {
		label := labels[slices.Index(members, i)]
		if numbers[label] == 0 {
			numbers[label] = len(numbers) + 1
		}
		here[i].Cluster = numbers[label]
	}
}

// logsOf returns the logarithms of a metric, by member and round. It returns nil if a
// member has too few values, or if contenders differ hardly more than rounds do.
func logsOf(e *analysis.Evidence, at analysis.FigureKey, here []analysis.Efficiency, members []int) []analysis.Series {
	var column []analysis.Series
	var medians, errors []float64
	for _, i := range members {
		logs := analysis.Series{}
		for round, v := range e.Figures[at][here[i].Contender] {
			if v > 0 {
				logs[round] = math.Log(v)
			}
		}
		if len(logs) < minRounds {
			return nil
		}
		column = append(column, logs)
		medians = append(medians, stat.Median(logs.Values()))
		errors = append(errors, medianError*stat.Deviation(logs.Values())/math.Sqrt(float64(len(logs))))
	}
	if len(column) == 0 || !(stat.Median(errors) <= maxNoise*stat.Deviation(medians)) || stat.Deviation(medians) == 0 {
		return nil
	}
	return column
}

// coordinates returns a point for each member. A coordinate is the member's median of a
// feature over its rounds (which may contain a round several times), divided by the
// standard deviation of the feature between members.
func coordinates(tables [][]analysis.Series, rounds [][]int) [][]float64 {
	points := make([][]float64, len(tables[0]))
	for _, column := range tables {
		medians := make([]float64, len(column))
		for i, logs := range column {
			var drawn []float64
			for _, round := range rounds[i] {
				if v, ok := logs[round]; ok {
					drawn = append(drawn, v)
				}
			}
			if len(drawn) == 0 {
				drawn = logs.Values()
			}
			medians[i] = stat.Median(drawn)
		}
		scale := stat.Deviation(medians)
		for i, m := range medians {
			if scale > 0 {
				m /= scale
			}
			points[i] = append(points[i], m)
		}
	}
	return points
}

// bestClusters returns the groups for the number of groups with the best silhouette. good
// is false if no silhouette exceeds minSilhouette.
func bestClusters(points [][]float64) (labels []int, good bool) {
	best := minSilhouette
	for k := 2; k <= min(maxClusters, len(points)-1); k++ {
		trial := stat.Clusters(points, k)
		if s := stat.Silhouette(points, trial); s > best {
			labels, best, good = trial, s, true
		}
	}
	return labels, good
}

// agreement returns the mean adjusted Rand index between the labels and the groups from
// resampled rounds. All members get the same rounds; if rounds are unpaired, each gets its
// own.
func agreement(tables [][]analysis.Series, rounds []int, labels []int, unpaired bool) float64 {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func() []int {
		drawn := make([]int, len(rounds))
		for i := range drawn {
			drawn[i] = rounds[r.IntN(len(rounds))]
		}
		return drawn
	}
	sum := 0.0
	for range resamples {
		drawn := slices.Repeat([][]int{draw()}, len(labels))
		for i := range drawn {
			if unpaired && i > 0 {
				drawn[i] = draw()
			}
		}
		sum += stat.AdjustedRand(labels, stat.Clusters(coordinates(tables, drawn), slices.Max(labels)))
	}
	return sum / resamples
}
