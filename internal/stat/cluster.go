package stat

import "math"

// Clusters parts points into k groups by average linkage: each point begins
// alone, and the two groups with the smallest mean distance between their
// points are joined until k are left. Labels count from 1 in the order of the
// points. k outside 1 to len(points) gives each point its own.
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
	// A group stays at the place of its first point: the order is theirs.
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

// Silhouette says how well the points fit their groups, from −1 to 1: the mean
// of (b−a)/max(a,b), with a the mean distance to the others of a point's own
// group and b that to the nearest other group (Rousseeuw 1987). A point alone
// in its group counts 0, and so does one group of all.
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

// AdjustedRand says how far two labellings of the same points agree: 1 is
// fully, 0 is as by chance (Hubert and Arabie 1985).
func AdjustedRand(a, b []int) float64 {
	both, inA, inB := map[[2]int]float64{}, map[int]float64{}, map[int]float64{}
	for i := range a {
		both[[2]int{a[i], b[i]}]++
		inA[a[i]]++
		inB[b[i]]++
	}
	index, pairsA, pairsB := pairs(both), pairs(inA), pairs(inB)
	n := float64(len(a))
	expected := pairsA * pairsB / max(1, n*(n-1)/2)
	most := (pairsA + pairsB) / 2
	if most == expected {
		return 1 // all alone, or all together, in both
	}
	return (index - expected) / (most - expected)
}

// pairs is the number of pairs within the groups of these sizes.
func pairs[K comparable](sizes map[K]float64) float64 {
	sum := 0.0
	for _, n := range sizes {
		sum += n * (n - 1) / 2
	}
	return sum
}
