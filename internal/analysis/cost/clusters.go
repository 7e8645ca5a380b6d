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
	leastMembers    = 4    // contenders, for groups to mean something
	leastRefits     = 3    // rounds, to draw anew from
	mostClusters    = 6    // more than these nobody tells apart
	leastSilhouette = 0.5  // below it groups are no more than chance (Kaufman and Rousseeuw: "reasonable" from 0.5)
	leastAgreement  = 0.8  // adjusted Rand index, mean over the resamples
	refits          = 100  // resamples of the rounds
	mostNoise       = 0.5  // of a feature's spread between contenders, its standard error in one
	medianError     = 1.25 // standard error of a median over that of a mean, for normal values
)

// markClusters numbers the groups of a step's contenders by their best
// goodput. It leaves them unnumbered where the silhouette does not speak for
// any number of groups, or the rounds drawn anew group differently. The
// baseline is no choice of pod network and is left out, or its distance would
// put all others into one group.
func markClusters(e *analysis.Evidence, at analysis.Place, here []analysis.Efficiency) {
	var members []int // of here
	for i := range here {
		if here[i].Contender != e.Run.Baseline && !e.Lossy(at, here[i].Contender) {
			members = append(members, i)
		}
	}
	var tables [][]analysis.Series // by feature, by member
	for _, feature := range result.With(result.Grouping) {
		if column := logsOf(e, at.With(feature), here, members); column != nil {
			tables = append(tables, column)
		}
	}
	if len(members) < leastMembers || len(tables) == 0 {
		return
	}
	rounds := e.Figures[at][here[members[0]].Contender].Rounds()
	if len(rounds) < leastRefits {
		return
	}
	all := slices.Repeat([][]int{rounds}, len(members))
	labels, good := bestClusters(coordinates(tables, all))
	if !good || agreement(tables, rounds, labels, e.Unpaired()) < leastAgreement {
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

// logsOf is the members' logarithms of a metric by round, which are what is
// standardised; nil where one has
// none, or where contenders differ by hardly more than rounds do.
func logsOf(e *analysis.Evidence, at analysis.Place, here []analysis.Efficiency, members []int) []analysis.Series {
	var column []analysis.Series
	var medians, errors []float64
	for _, i := range members {
		logs := analysis.Series{}
		for round, v := range e.Figures[at][here[i].Contender] {
			if v > 0 {
				logs[round] = math.Log(v)
			}
		}
		if len(logs) < leastRefits {
			return nil
		}
		column = append(column, logs)
		medians = append(medians, stat.Median(logs.Values()))
		errors = append(errors, medianError*stat.Deviation(logs.Values())/math.Sqrt(float64(len(logs))))
	}
	if len(column) == 0 || !(stat.Median(errors) <= mostNoise*stat.Deviation(medians)) || stat.Deviation(medians) == 0 {
		return nil
	}
	return column
}

// coordinates are the members' medians over the rounds, given for each by a
// drawing that may name one twice, each feature in its own standard deviations.
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

// bestClusters takes the number of groups with the greatest silhouette.
func bestClusters(points [][]float64) (labels []int, good bool) {
	best := leastSilhouette
	for k := 2; k <= min(mostClusters, len(points)-1); k++ {
		trial := stat.Clusters(points, k)
		if s := stat.Silhouette(points, trial); s > best {
			labels, best, good = trial, s, true
		}
	}
	return labels, good
}

// agreement is how far rounds drawn anew give the same groups; the same rounds
// for all, or, where rounds are no pairs, others for each.
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
	for range refits {
		drawn := slices.Repeat([][]int{draw()}, len(labels))
		for i := range drawn {
			if unpaired && i > 0 {
				drawn[i] = draw()
			}
		}
		again := stat.Clusters(coordinates(tables, drawn), slices.Max(labels))
		sum += stat.AdjustedRand(labels, again)
	}
	return sum / refits
}
