package mesh

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/stat"
)

// Shared is a label that slow nodes have and others lack.
type Shared struct {
	Label string  `json:"label"`
	Value string  `json:"value"`
	Slow  [2]int  `json:"slow"`   // slow nodes with the label, of all slow ones
	Sound [2]int  `json:"others"` // the same of the other nodes
	P     float64 `json:"p"`      // adjusted for the number of labels
}

// SharedLabels returns the labels that the slow nodes have more often than chance gives (Fisher's
// exact test, Holm), the surest first. Fewer than two slow nodes share nothing.
func SharedLabels(nodes []Node, slow map[string]bool) []Shared {
	if len(slow) < 2 {
		return nil
	}
	with := map[[2]string]*Shared{}
	bad := 0
	for _, n := range nodes {
		if slow[n.Name] {
			bad++
		}
		labels := maps.Clone(n.Labels)
		if n.Zone != "" {
			if labels == nil {
				labels = map[string]string{}
			}
			labels["zone"] = n.Zone
		}
		for label, value := range labels {
			key := [2]string{label, value}
			if with[key] == nil {
				with[key] = &Shared{Label: label, Value: value}
			}
			if slow[n.Name] {
				with[key].Slow[0]++
			} else {
				with[key].Sound[0]++
			}
		}
	}
	var all []Shared
	var p []float64
	for _, s := range with {
		s.Slow[1], s.Sound[1] = bad, len(nodes)-bad
		if s.Slow[0]+s.Sound[0] == len(nodes) {
			continue // all have it
		}
		s.P = FisherAbove(s.Slow[0], s.Slow[1], s.Sound[0], s.Sound[1])
		all, p = append(all, *s), append(p, s.P)
	}
	var out []Shared
	for i, adjusted := range stat.Holm(p) {
		if all[i].P = adjusted; adjusted <= falseAll {
			out = append(out, all[i])
		}
	}
	slices.SortFunc(out, func(a, b Shared) int {
		return cmp.Or(cmp.Compare(a.P, b.P), cmp.Compare(a.Label, b.Label), cmp.Compare(a.Value, b.Value))
	})
	return out
}

// FisherAbove returns the one-sided p of Fisher's exact test: the chance of at least hits of n
// in the first sample, if both samples (otherHits of otherN in the second one) are drawn alike.
func FisherAbove(hits, n, otherHits, otherN int) float64 {
	all, k := n+otherN, hits+otherHits
	if n <= 0 || otherN <= 0 || k == 0 {
		return 1
	}
	whole := logChoose(all, k)
	p := 0.0
	for x := hits; x <= min(n, k); x++ {
		if k-x > otherN {
			continue
		}
		p += math.Exp(logChoose(n, x) + logChoose(otherN, k-x) - whole)
	}
	return min(1, p)
}

func logChoose(n, k int) float64 {
	lg := func(x int) float64 { v, _ := math.Lgamma(float64(x) + 1); return v }
	return lg(n) - lg(k) - lg(n-k)
}
