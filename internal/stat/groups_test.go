package stat

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
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

func TestClusters(t *testing.T) {
	points := [][]float64{{0, 0}, {10, 10}, {0, 1}, {10, 11}, {1, 0}, {30, 0}}
	tests := []struct {
		k    int
		want []int
	}{
		{1, []int{1, 1, 1, 1, 1, 1}},
		{2, []int{1, 1, 1, 1, 1, 2}},
		{3, []int{1, 2, 1, 2, 1, 3}},
		{6, []int{1, 2, 3, 4, 5, 6}},
		{0, []int{1, 2, 3, 4, 5, 6}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, Clusters(points, tt.k)); diff != "" {
			t.Errorf("k = %d:\n%s", tt.k, diff)
		}
	}
	good, bad := Silhouette(points[:5], []int{1, 2, 1, 2, 1}), Silhouette(points[:5], []int{1, 1, 2, 2, 1})
	if good < 0.8 || bad > 0.3 {
		t.Errorf("Silhouette: %v of the right groups, %v of wrong ones", good, bad)
	}
	if got := Silhouette(points, []int{1, 1, 1, 1, 1, 1}); got != 0 {
		t.Errorf("Silhouette of one group = %v", got)
	}
	if Clusters(nil, 2) == nil || Silhouette(nil, nil) != 0 {
		t.Error("no points are no error")
	}
}

func TestAdjustedRand(t *testing.T) {
	tests := []struct {
		name string
		a, b []int
		want float64
	}{
		{"same", []int{1, 1, 2, 2}, []int{1, 1, 2, 2}, 1},
		{"other names", []int{1, 1, 2, 2}, []int{7, 7, 3, 3}, 1},
		{"all alone", []int{1, 2, 3}, []int{3, 2, 1}, 1},
		{"worse than chance", []int{1, 1, 2, 2}, []int{1, 2, 1, 2}, -0.5},
		{"a textbook's", []int{1, 1, 1, 2, 2, 2}, []int{1, 1, 2, 2, 3, 3}, 0.24242424242424243},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := AdjustedRand(tt.a, tt.b); !near(got, tt.want) {
				t.Errorf("AdjustedRand = %v, want %v", got, tt.want)
			}
		})
	}
}
