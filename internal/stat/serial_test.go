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
		least, most        float64 // share of runs
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
		if share < tt.least || tt.most < 1 && share > tt.most+margin {
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
