package load

import (
	"errors"
	"math"
	"testing"
)

func TestSearch(t *testing.T) {
	const guess = 1000.0
	upTo := func(most float64) func(float64) (bool, error) {
		return func(rate float64) (bool, error) { return rate <= most, nil }
	}
	refuse := func(float64) (bool, error) { return false, nil }
	disturbed := func(most float64) func(float64) (bool, error) { // every other try fails
		n := 0
		return func(rate float64) (bool, error) { n++; return rate <= most && n%2 == 0, nil }
	}
	broken := errors.New("broken")
	tests := []struct {
		name           string
		probe, confirm func(float64) (bool, error)
		best           float64
		err            error
	}{
		{"near the closed loop's rate", upTo(985), upTo(985), 985, nil},
		{"the closed loop was disturbed", upTo(5370), upTo(5370), 5370, nil},
		{"a hundredfold", upTo(100_000), upTo(100_000), 100_000, nil},
		{"far below it", upTo(300), upTo(300), 300, nil},
		{"disturbed", disturbed(500), upTo(500), 500, nil},
		{"a long run carries less", upTo(800), upTo(640), 640, nil},
		{"none", refuse, refuse, 0, nil},
		{"none is confirmed", upTo(800), refuse, 0, nil},
		{"a probe breaks", func(float64) (bool, error) { return false, broken }, refuse, 0, broken},
		{"a confirmation breaks", upTo(800), func(float64) (bool, error) { return false, broken }, 0, broken},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			best, err := search(guess, tt.probe, tt.confirm)
			if !errors.Is(err, tt.err) || err == nil && (best > tt.best || math.Abs(best-tt.best) > tt.best/8) {
				t.Errorf("%v, %v; want %v or a little less, %v", best, err, tt.best, tt.err)
			}
		})
	}
}
