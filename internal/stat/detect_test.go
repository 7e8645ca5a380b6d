package stat

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// The tables must give the power that they promise.
func TestDetectableShifts(t *testing.T) {
	const trials = 2000
	var ranks RankTest
	type test struct {
		name   string
		n      int
		shift  float64
		reject func(noise []float64, shift float64) bool
	}
	var tests []test
	paired := func(noise []float64, shift float64) bool {
		ratios := make([]float64, len(noise)/2)
		for i := range ratios {
			ratios[i] = math.Exp(0.05 * (noise[i] + shift))
		}
		return SignedRank(ratios) <= DetectAlpha
	}
	ranked := func(noise []float64, shift float64) bool {
		half := len(noise) / 2
		a := make([]float64, half)
		for i := range a {
			a[i] = noise[i] + shift
		}
		return ranks.P(a, noise[half:]) <= DetectAlpha
	}
	for _, n := range []int{6, 7, 8, 13, 20} {
		tests = append(tests, test{"paired", n, DetectablePaired(n), paired})
	}
	for _, n := range []int{4, 5, 6, 8, 12, 20} {
		tests = append(tests, test{"ranks", n, DetectableRanks(n), ranked})
	}
	for _, tt := range tests {
		r := random(uint64(tt.n))
		found := 0
		for range trials {
			noise := make([]float64, 2*tt.n)
			for i := range noise {
				noise[i] = r.NormFloat64()
			}
			if tt.reject(noise, tt.shift) {
				found++
			}
		}
		if power := float64(found) / trials; math.Abs(power-DetectPower) > 0.04 {
			t.Errorf("%s, n = %d: a shift of %.2f is found with %.3f, want %.2f", tt.name, tt.n, tt.shift, power, DetectPower)
		}
	}
}

// So must the table for a pair among several series.
func TestDetectableApart(t *testing.T) {
	trials := needs.Trials(800, 150)
	for _, tt := range []struct{ rounds, series int }{{6, 2}, {8, 3}, {7, 5}, {9, 7}, {9, 9}, {14, 5}, {18, 3}} {
		r := random(uint64(tt.rounds * tt.series))
		shift := math.Sqrt2 * DetectableApart(tt.rounds, tt.series) // of one series' deviation
		found := 0
		for range trials {
			series := make([][]float64, tt.series)
			for i := range series {
				for range tt.rounds {
					v := r.NormFloat64()
					if i == len(series)-1 {
						v += shift
					}
					series[i] = append(series[i], math.Exp(0.02*v))
				}
			}
			if ComparePairs(series, DetectAlpha, 1)[0][tt.series-1] <= DetectAlpha {
				found++
			}
		}
		if power := float64(found) / float64(trials); math.Abs(power-DetectPower) > 3*math.Sqrt(DetectPower*(1-DetectPower)/float64(trials)) {
			t.Errorf("%d rounds of %d series: found with %.3f, want %.2f", tt.rounds, tt.series, power, DetectPower)
		}
	}
	if d := DetectableApart(5, 3); !math.IsInf(d, 1) {
		t.Errorf("five rounds find %v", d)
	}
	for series, want := range map[int]int{1: 9, 2: 9, 3: 9, 5: 10, 9: 11, 16: 12} {
		if got := RoundsToTellApart(series); got != want {
			t.Errorf("%d contenders take %d rounds, want %d", series, got, want)
		}
	}
}

func TestDetectableBounds(t *testing.T) {
	for n := range 6 {
		if d := DetectablePaired(n); !math.IsInf(d, 1) {
			t.Errorf("DetectablePaired(%d) = %v: no p can be small enough", n, d)
		}
	}
	for n := 6; n < 200; n++ {
		if DetectablePaired(n+1) >= DetectablePaired(n) {
			t.Errorf("DetectablePaired grows at %d", n)
		}
	}
	for n := 4; n < 200; n++ {
		if DetectableRanks(n+1) >= DetectableRanks(n) {
			t.Errorf("DetectableRanks grows at %d", n)
		}
	}
	for shift, want := range map[float64]int{100: 6, 1.79: 6, 1.5: 7, 1e-9: 0, 0: 0} {
		if got := RoundsFor(shift, DetectablePaired); got != want {
			t.Errorf("RoundsFor(%v) = %d, want %d", shift, got, want)
		}
	}
	if got := RoundsFor(math.NaN(), DetectablePaired); got != 0 {
		t.Errorf("RoundsFor(NaN) = %d", got)
	}
}

func TestLogDeviation(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values []float64
		want   float64
	}{
		{"same", []float64{3, 3, 3}, 0},
		{"a factor e", []float64{1, math.E}, math.Sqrt2 / 2},
		{"one", []float64{3}, math.NaN()},
		{"zero", []float64{0, 3}, math.NaN()},
		{"negative", []float64{-1, 3}, math.NaN()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := LogDeviation(tt.values)
			if math.IsNaN(tt.want) != math.IsNaN(got) || !math.IsNaN(got) && !near(got, tt.want) {
				t.Errorf("LogDeviation(%v) = %v, want %v", tt.values, got, tt.want)
			}
		})
	}
}

// Long series take fewer slopes, and few draws what looks like nothing.
func TestLongSeries(t *testing.T) {
	values := make([]float64, 2*allSlopes)
	for i := range values {
		values[i] = 3 + 0.1*float64(i)
	}
	if got := Trend(values); math.Abs(got.Slope-0.1) > 1e-9 || got.P > 1e-9 {
		t.Errorf("%+v", got)
	}
	var test SplitTest
	r := rand.New(rand.NewPCG(5, 6))
	for i := range values {
		values[i] = r.NormFloat64()
		if i%2 == 1 {
			values[i] += 20
		}
	}
	if got := test.Split(values); got.P > 1e-4 || len(got.Low) != allSlopes {
		t.Errorf("two groups of %d: p %v, %d low", allSlopes, got.P, len(got.Low))
	}
	for of := range test.null {
		if of.values > maxSimulated {
			t.Errorf("%d values were simulated", of.values)
		}
	}
}
