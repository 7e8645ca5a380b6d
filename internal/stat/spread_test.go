package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestStudentQuantile(t *testing.T) {
	for _, tt := range []struct{ p, free, want float64 }{
		{0.975, 1, 12.7062}, {0.975, 2, 4.3027}, {0.975, 14, 2.1448}, {0.95, 5, 2.0150}, {0.9975, 30, 3.0298}, {0.975, 1e6, 1.95997},
	} {
		if got := studentQuantile(tt.p, tt.free); math.Abs(got-tt.want) > 1e-4*tt.want {
			t.Errorf("t(%v, %v) = %v, want %v", tt.p, tt.free, got, tt.want)
		}
	}
}

// The pooled spread knows the noise, and equal kinds differ by less than Different in at
// least 19 of 20 runs, paired or not.
func TestPooledSpread(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	const runs, noise = 1000, 0.06
	for _, tt := range []struct {
		kinds, values int
		paired        bool
	}{{7, 3, false}, {23, 3, false}, {6, 2, true}, {4, 5, true}, {2, 3, false}} {
		false_, sum := 0, 0.0
		for range runs {
			rows := make([][]float64, tt.kinds)
			mood := make([]float64, tt.values)
			for i := range mood {
				mood[i] = 0.3 * r.NormFloat64()
			}
			var middles []float64
			for k := range rows {
				for i := range tt.values {
					v := noise * r.NormFloat64()
					if tt.paired {
						v += mood[i]
					}
					rows[k] = append(rows[k], math.Exp(v))
				}
				middle := math.Log(Median(rows[k]))
				if tt.paired { // as ratios within rounds are compared
					apart := make([]float64, tt.values)
					for i := range apart {
						apart[i] = rows[k][i] / math.Exp(mood[i])
					}
					middle = math.Log(Median(apart))
				}
				middles = append(middles, middle)
			}
			s, ok := PooledSpread(rows, tt.paired)
			if !ok {
				t.Fatal("no spread")
			}
			sum += s.Within * s.Within
			low, high := math.Inf(1), math.Inf(-1)
			for _, m := range middles {
				low, high = min(low, m), max(high, m)
			}
			if high-low > s.Different {
				false_++
			}
		}
		if got := math.Sqrt(sum / runs); math.Abs(got/noise-1) > 0.05 {
			t.Errorf("%+v: spread %.3f, want %.3f", tt, got, noise)
		}
		if false_ > runs/20+15 {
			t.Errorf("%+v: %d of %d runs find a difference between equal kinds", tt, false_, runs)
		}
	}
	for _, rows := range [][][]float64{{{1}, {2}}, {{1, 0}}, {}, {{2, 2}, {3, 3}}} {
		if s, ok := PooledSpread(rows, false); ok {
			t.Errorf("%v has the spread %+v", rows, s)
		}
	}
}
