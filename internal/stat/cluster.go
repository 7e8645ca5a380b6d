package stat

import "math"

// Clusters divides points into k groups by average linkage: each point begins alone, and
// the two groups with the smallest mean distance between their points are joined until k
// groups are left. It returns the number of each point's group; groups are numbered from 1
// in the order of their first points. If k is not 1 to len(points), every point stays alone.
func Clusters(points [][]float64, k int) []int {
	groups := make([][]int, len(points))
	for i := range points {
		groups[i] = []int{i}
	}
	for k >= 1 && len(groups) > k {
		a, b, least := 0, 1, math.Inf(1)
		for i := range groups {
			for j := i + 1; j < len(groups); j++ {
				if d := meanDistance(points, groups[i], groups[j]); d < least {
					a, b, least = i, j, d
				}
			}
		}
		groups[a] = append(groups[a], groups[b]...)
		groups = append(groups[:b], groups[b+1:]...)
	}
	// Joining kept a group at the index of its first point, so groups are in that order.
	labels := make([]int, len(points))
	for i, group := range groups {
		for _, point := range group {
			labels[point] = i + 1
		}
	}
	return labels
}

func meanDistance(points [][]float64, a, b []int) float64 {
	sum := 0.0
	for _, i := range a {
		for _, j := range b {
			sum += distance(points[i], points[j])
		}
	}
	return sum / float64(len(a)*len(b))
}

func distance(a, b []float64) float64 {
	squares := 0.0
	for i := range a {
		squares += (a[i] - b[i]) * (a[i] - b[i])
	}
	return math.Sqrt(squares)
}

// Silhouette returns how well the points fit their groups, from −1 to 1 (best): the mean
// over the points of (b−a)/max(a,b) (Rousseeuw 1987). a is a point's mean distance to the
// other points of its group, b its mean distance to the points of the nearest other group.
// A point that is alone in its group counts 0. If there is a single group, the result is 0.
func Silhouette(points [][]float64, labels []int) float64 {
	sum := 0.0
	for i := range points {
		total, count := map[int]float64{}, map[int]int{}
		for j := range points {
			if i != j {
				total[labels[j]] += distance(points[i], points[j])
				count[labels[j]]++
			}
		}
		own, nearest := labels[i], math.Inf(1)
		for label, n := range count {
			if label != own {
				nearest = min(nearest, total[label]/float64(n))
			}
		}
		if count[own] == 0 || math.IsInf(nearest, 1) {
			continue
		}
		a := total[own] / float64(count[own])
		if widest := max(a, nearest); widest > 0 {
			sum += (nearest - a) / widest
		}
	}
	return sum / float64(max(1, len(points)))
}

// AdjustedRand returns how far two groupings of the same points agree: 1 is full
// agreement, 0 is what chance gives (Hubert and Arabie 1985).
func AdjustedRand(a, b []int) float64 {
	both, inA, inB := map[[2]int]float64{}, map[int]float64{}, map[int]float64{}
	for i := range a {
		both[[2]int{a[i], b[i]}]++
		inA[a[i]]++
		inB[b[i]]++
	}
	index, pairsA, pairsB := pairsWithin(both), pairsWithin(inA), pairsWithin(inB)
	n := float64(len(a))
	expected := pairsA * pairsB / max(1, n*(n-1)/2)
	most := (pairsA + pairsB) / 2
	if most == expected {
		return 1 // in both groupings all points are alone, or all are together
	}
	return (index - expected) / (most - expected)
}

// pairsWithin returns the number of pairs within groups of these sizes.
func pairsWithin[K comparable](sizes map[K]float64) float64 {
	sum := 0.0
	for _, n := range sizes {
		sum += n * (n - 1) / 2
	}
	return sum
}
