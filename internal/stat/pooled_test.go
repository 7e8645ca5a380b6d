package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

// noisySeconds are n values with noise of 5 %, each as like the one before as r says, times
// level of their position.
func noisySeconds(r *rand.Rand, n int, alike float64, level func(i int) float64) []float64 {
	values, noise := make([]float64, n), r.NormFloat64()
	for i := range values {
		noise = alike*noise + math.Sqrt(1-alike*alike)*r.NormFloat64()
		values[i] = level(i) * math.Exp(0.05*noise)
	}
	return values
}

// changesOf are those at the thirds and the middle of six values.
func changesOf(values []float64) []float64 {
	var changes []float64
	for _, cut := range []int{2, 3, 4} {
		before, after := 0.0, 0.0
		for i, v := range values {
			if i < cut {
				before += v / float64(cut)
			} else {
				after += v / float64(len(values)-cut)
			}
		}
		changes = append(changes, math.Log(after/before))
	}
	return changes
}

// Short windows, pooled, show a warm-up of 10 % and no false one, although seconds resemble
// their neighbours.
func TestMirrored(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	found, alarms := 0, 0
	const runs = 200
	for range runs {
		var warming, steady [][]float64
		for range 12 {
			warming = append(warming, changesOf(noisySeconds(r, 6, 0.5, func(i int) float64 {
				if i < 2 {
					return 0.9
				}
				return 1
			})))
			steady = append(steady, changesOf(noisySeconds(r, 6, 0.5, func(int) float64 { return 1 })))
		}
		if at, p := Mirrored(warming); p <= 0.05 && at == 0 {
			found++
		}
		if _, p := Mirrored(steady); p <= 0.05 {
			alarms++
		}
	}
	if found < 9*runs/10 || alarms > runs/20+10 {
		t.Errorf("found %d, false %d of %d", found, alarms, runs)
	}
	if _, p := Mirrored(nil); p != 1 {
		t.Errorf("p %v of nothing", p)
	}
}

// Ten seconds in each of seven rounds show steps that lie elsewhere in every round.
func TestStepped(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	found, alarms := 0, 0
	const runs = 40
	for range runs {
		var stepped, steady [][]float64
		for range 7 {
			at, higher := 3+r.IntN(5), r.IntN(2) == 0
			stepped = append(stepped, noisySeconds(r, 10, 0.3, func(i int) float64 {
				if i < at == higher {
					return 0.8
				}
				return 1
			}))
			steady = append(steady, noisySeconds(r, 10, 0.3, func(int) float64 { return 1 }))
		}
		if Stepped(stepped) <= 0.05/9 {
			found++
		}
		if Stepped(steady) <= 0.05 {
			alarms++
		}
	}
	if found < 9*runs/10 || alarms > 8 {
		t.Errorf("found %d, false %d of %d", found, alarms, runs)
	}
	if p := Stepped([][]float64{{1, 2, 3}}); p != 1 {
		t.Errorf("p %v of three values", p)
	}
}
