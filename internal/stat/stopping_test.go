package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

// roundNoises are what scatters the logarithm of a round's ratio, in units of its
// spread.
var roundNoises = map[string]func(rng *rand.Rand) float64{
	"normal":           func(rng *rand.Rand) float64 { return rng.NormFloat64() },
	"t with 2 degrees": func(rng *rand.Rand) float64 { return rng.NormFloat64() / math.Sqrt(rng.ExpFloat64()) },
	"two levels": func(rng *rand.Rand) float64 {
		return float64(2*rng.IntN(2)-1) + 0.2*rng.NormFloat64()
	},
}

// A run that ends when an interval is narrow enough still has one that holds the truth
// in 95 % of all runs, whatever the noise and however soon it ends.
func TestStoppedCoverage(t *testing.T) {
	const runs, until, maximum = 400, 0.05, 30
	for name, noise := range roundNoises {
		for _, spread := range []float64{0.02, 0.06, 0.1} {
			rng := rand.New(rand.NewPCG(7, 7))
			covered := 0
			for range runs {
				var ratios []float64
				for {
					ratios = append(ratios, math.Exp(spread*noise(rng)))
					s := PairedShift(ratios, StoppedConfidence)
					if s.Bounded() && (HalfWidth(s.Low, s.High) <= until || len(ratios) == maximum) {
						if s.Low <= 1 && s.High >= 1 {
							covered++
						}
						break
					}
				}
			}
			// Two standard deviations of a count of 400 at 95 %.
			if got := float64(covered) / runs; got < 0.95-0.022 {
				t.Errorf("%s, spread %.2f: %.1f %% of the intervals hold the truth", name, spread, 100*got)
			}
		}
	}
}
