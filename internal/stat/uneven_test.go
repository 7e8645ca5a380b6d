package stat

import (
	"math"
	"slices"
	"testing"
)

func TestUneven(t *testing.T) {
	for _, tt := range []struct {
		name       string
		counts, of []int
		p, minimum float64
	}{
		// Two contenders: Fisher's exact test.
		{"one survives of seven", []int{1, 7}, []int{7, 7}, 14.0 / 3003, 14.0 / 3003},
		{"all or nothing", []int{0, 5}, []int{5, 5}, 2.0 / 252, 2.0 / 252},
		{"even", []int{3, 3, 3}, []int{7, 7, 7}, 1, 6.0 * 21 / 293930},
		{"nothing happened", []int{0, 0}, []int{7, 7}, 1, 1},
		{"always", []int{7, 7}, []int{7, 7}, 1, 1},
		{"nobody tried", []int{0, 0}, []int{0, 0}, 1, 1},
		{"unlike numbers of tries", []int{1, 0}, []int{1, 9}, 0.1, 0.1},
	} {
		p, minimum := CompareCounts(tt.counts, tt.of)
		if math.Abs(p-tt.p) > 1e-12 || math.Abs(minimum-tt.minimum) > 1e-12 {
			t.Errorf("%s: p %v, least %v, want %v and %v", tt.name, p, minimum, tt.p, tt.minimum)
		}
	}
}

// TestUnevenOfMany: too many ways to go through; the expected p are those of the chi-squared
// distribution.
func TestUnevenOfMany(t *testing.T) {
	var counts, primes []int
	for n := 2; len(primes) < 30; n++ {
		prime := true
		for d := 2; d*d <= n; d++ {
			prime = prime && n%d != 0
		}
		if prime {
			counts, primes = append(counts, n/2), append(primes, n)
		}
	}
	for _, tt := range []struct {
		name       string
		counts, of []int
		p, within  float64
	}{
		{"two of 2000", []int{1000, 1100}, []int{2000, 2000}, 0.00154, 0.0002},
		{"twenty of 900", slices.Repeat([]int{300, 330}, 10), slices.Repeat([]int{900}, 20), 0.285, 0.01},
		{"tries without a common multiple", counts, primes, 1, 0.001},
	} {
		if p, minimum := CompareCounts(tt.counts, tt.of); math.Abs(p-tt.p) > tt.within || minimum != 0 {
			t.Errorf("%s: p %v, least %v, want %v within %v, and 0", tt.name, p, minimum, tt.p, tt.within)
		}
	}
}
