package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

// lasting is two places of so many contenders, of which each keeps that share of its noise
// from round to round, on a machine that drifts.
func lasting(r *rand.Rand, contenders, rounds int, own float64) [][][]float64 {
	tables := make([][][]float64, 2)
	for p := range tables {
		tables[p] = make([][]float64, contenders)
		machine, noise := r.NormFloat64(), make([]float64, contenders)
		for round := range rounds {
			machine = 0.8*machine + r.NormFloat64()
			for c := range noise {
				fresh := r.NormFloat64()
				if round > 0 {
					fresh = own*noise[c] + math.Sqrt(1-own*own)*fresh
				}
				noise[c] = fresh
				tables[p][c] = append(tables[p][c], math.Exp(0.05*(machine+fresh)+0.1*float64(c)))
			}
		}
	}
	return tables
}

// Noise that begins anew in each round is called lasting in at most 5 % of the runs,
// whatever the machine does; noise that lasts is found.
func TestSerially(t *testing.T) {
	const runs = 300
	for _, tt := range []struct {
		contenders, rounds int
		own                float64
		minimum, maximum   float64 // share of runs
	}{
		{3, 6, 0, 0, 0.05}, {9, 7, 0, 0, 0.05}, {5, 12, 0, 0, 0.05},
		{9, 7, 0.3, 0.3, 1}, {9, 12, 0.3, 0.7, 1}, {9, 12, 0.6, 0.97, 1},
	} {
		r := random(uint64(tt.contenders))
		found := 0
		for range runs {
			if Serially(lasting(r, tt.contenders, tt.rounds, tt.own)).P <= 0.05 {
				found++
			}
		}
		share, margin := float64(found)/runs, 3*math.Sqrt(0.05*0.95/runs)
		t.Logf("%d contenders, %d rounds, %.1f: found in %.3f", tt.contenders, tt.rounds, tt.own, share)
		if share < tt.minimum || tt.maximum < 1 && share > tt.maximum+margin {
			t.Errorf("%d contenders, %d rounds, noise that lasts by %.1f: found in %.3f of the runs", tt.contenders, tt.rounds, tt.own, share)
		}
	}
}

func TestSeriallyOfNothing(t *testing.T) {
	few := lasting(random(1), 3, 5, 0)
	alone := lasting(random(1), 1, 9, 0)
	same := [][][]float64{{{1, 1, 1, 1, 1, 1}, {2, 2, 2, 2, 2, 2}}}
	gap := [][][]float64{{{1, 2, 1, 3, 1, math.NaN()}, {2, 3, 2, 1, 2, 4}}}
	for name, tables := range map[string][][][]float64{"too few rounds": few, "one contender": alone, "no noise": same, "a missing round": gap, "none": nil} {
		if s := Serially(tables); !math.IsNaN(s.P) {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// The inflation is that of the mean of a long autoregressive series, and stays within 1 and 3.
func TestInflation(t *testing.T) {
	for upper, want := range map[float64]float64{math.NaN(): 1, -0.2: 1, 0: 1, 0.6: 2, 0.8: 3, 0.95: 3} {
		if got := (Serial{Upper: upper}).Inflation(); math.Abs(got-want) > 1e-12 {
			t.Errorf("correlation %v: inflation %v, want %v", upper, got, want)
		}
	}
	ratios := []float64{1.02, 1.05, 1.01, 1.04, 1.03, 1.06, 1.02}
	for _, inflation := range []float64{1, 1.3, 2, 4, 9} {
		s, p := ComparePaired(ratios, 0.95, inflation)
		if holds := s.Low <= 1; holds != (p > 0.05) {
			t.Errorf("inflation %v: interval %v to %v, p %v", inflation, s.Low, s.High, p)
		}
		if plain := PairedShift(ratios, 0.95); math.Abs(math.Log(s.High/s.Ratio)-inflation*math.Log(plain.High/plain.Ratio)) > 1e-12 {
			t.Errorf("inflation %v: the upper end is %v", inflation, s.High)
		}
	}
	series := [][]float64{nil, nil}
	for _, ratio := range ratios {
		series[0], series[1] = append(series[0], 1), append(series[1], ratio)
	}
	if few, many := ComparePairs(series, 0.05, 1)[0][1], ComparePairs(series, 0.05, 9)[0][1]; few > 0.05 || many <= 0.05 {
		t.Errorf("p of a difference is %v, and %v where noise may be nine times that of the mean", few, many)
	}
}
