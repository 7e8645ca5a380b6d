package stat

import (
	"slices"
	"testing"
)

func TestHolmTestable(t *testing.T) {
	tests := []struct {
		name       string
		p, minimum []float64
		want       []float64
	}{
		{name: "none"},
		{name: "all can reject", p: []float64{0.01, 0.02}, minimum: []float64{0.001, 0.001}, want: []float64{0.02, 0.02}},
		{name: "one cannot", p: []float64{0.04, 1}, minimum: []float64{0.001, 1}, want: []float64{0.04, 1}},
		{name: "nothing can", p: []float64{0.1, 0.3}, minimum: []float64{0.1, 0.1}, want: []float64{1, 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := HolmTestable(tt.p, tt.minimum, 0.05); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
