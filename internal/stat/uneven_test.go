package stat

import (
	"math"
	"testing"
)

func TestUneven(t *testing.T) {
	for _, tt := range []struct {
		name       string
		counts, of []int
		p, least   float64
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
		p, least := Uneven(tt.counts, tt.of)
		if math.Abs(p-tt.p) > 1e-12 || math.Abs(least-tt.least) > 1e-12 {
			t.Errorf("%s: p %v, least %v, want %v and %v", tt.name, p, least, tt.p, tt.least)
		}
	}
}
