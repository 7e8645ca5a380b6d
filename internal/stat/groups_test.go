package stat

import (
	"math"
	"testing"
)

func TestSplit(t *testing.T) {
	var test SplitTest
	tests := []struct {
		name      string
		values    []float64
		low, high int
		small     bool // p ≤ 0.01
	}{
		{"too few", []float64{1, 9, 1, 9}, 0, 0, false},
		{"same", []float64{5, 5, 5, 5, 5, 5}, 3, 3, false},
		{"two groups", []float64{10, 20, 10.1, 20.2, 9.9, 19.8}, 3, 3, true},
		{"two of eight", []float64{10, 10.2, 20, 10.1, 20.2, 9.9, 10.15, 9.8}, 6, 2, true},
		{"an outlier", []float64{10, 10.2, 20, 10.1, 9.7, 9.9, 10.15, 9.8}, 0, 0, false},
		{"even", []float64{1, 2, 3, 4, 5, 6, 7, 8}, 4, 4, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := test.Split(tt.values)
			if (got.P <= 0.01) != tt.small || !(got.P > 0 && got.P <= 1) {
				t.Errorf("p = %v, want small %v", got.P, tt.small)
			}
			if tt.small && (len(got.Low) != tt.low || len(got.High) != tt.high) {
				t.Errorf("groups %v and %v", got.Low, got.High)
			}
		})
	}
}

// Under the null hypothesis the tests must not reject more often than they say.
func TestSeriesFalseAlarms(t *testing.T) {
	const trials, alpha = 2000, 0.05
	r := random(8)
	var split SplitTest
	rejected := map[string]int{}
	for range trials {
		values := make([]float64, 20)
		for i := range values {
			values[i] = r.NormFloat64()
		}
		if split.Split(values[:6]).P <= alpha {
			rejected["Split"]++
		}
	}
	for name, n := range rejected {
		if share := float64(n) / trials; share > alpha+4*math.Sqrt(alpha*(1-alpha)/trials) {
			t.Errorf("%s rejected %.3f of the null cases at level %v", name, share, alpha)
		}
	}
}
