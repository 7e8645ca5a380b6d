package stat

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/perf/benchmath"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// skewed draws from a log-normal distribution, as latencies are; its median is 1.
func skewed(r *rand.Rand, n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = math.Exp(r.NormFloat64())
	}
	return values
}

func TestMedian(t *testing.T) {
	tests := []struct {
		name   string
		values []float64
		want   float64
	}{
		{"one", []float64{3}, 3},
		{"odd", []float64{9, 1, 5}, 5},
		{"even", []float64{4, 1, 3, 2}, 2.5},
		{"large", []float64{math.MaxFloat64, math.MaxFloat64}, math.MaxFloat64},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := slices.Clone(tt.values)
			if got := Median(tt.values); got != tt.want {
				t.Errorf("Median(%v) = %v, want %v", tt.values, got, tt.want)
			}
			if diff := cmp.Diff(before, tt.values); diff != "" {
				t.Errorf("the argument changed:\n%s", diff)
			}
		})
	}
	if got := Median(nil); !math.IsNaN(got) {
		t.Errorf("Median of nothing = %v, want NaN", got)
	}
}

func TestMedianInterval(t *testing.T) {
	ten := []float64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}
	tests := []struct {
		name       string
		values     []float64
		confidence float64
		want       Interval
	}{
		{"six, 95 %", ten[:6], 0.95, Interval{5, 10, 0.96875}},
		{"eight, 95 %", ten[:8], 0.95, Interval{3, 10, 0.9921875}},
		{"ten, 95 %", ten, 0.95, Interval{2, 9, 0.978515625}},
		{"ten, 99 %", ten, 0.99, Interval{1, 10, 0.998046875}},
		{"five, 90 %", ten[:5], 0.90, Interval{6, 10, 0.9375}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := MedianInterval(tt.values, tt.confidence)
			if err != nil || got.Low != tt.want.Low || got.High != tt.want.High || !near(got.Confidence, tt.want.Confidence) {
				t.Errorf("MedianInterval = %v, %v; want %v", got, err, tt.want)
			}
		})
	}

	_, err := MedianInterval(ten[:5], 0.95)
	var few *TooFewError
	if !errors.As(err, &few) || few.Needs != 6 || few.N != 5 {
		t.Fatalf("five values: error %v, want one that needs 6", err)
	}
	if want := "no interval with n=5 (needs 6 for 95 %)"; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
	if _, err := MedianInterval(nil, 0.95); err == nil {
		t.Error("an interval of no values")
	}
}

func TestNeedsForInterval(t *testing.T) {
	for confidence, want := range map[float64]int{0.5: 2, 0.90: 5, 0.95: 6, 0.99: 8} {
		if got := NeedsForInterval(confidence); got != want {
			t.Errorf("NeedsForInterval(%v) = %d, want %d", confidence, got, want)
		}
	}
}

// The interval must hold the true median as often as it says, whatever the
// distribution: here by simulation, within four standard errors.
func TestMedianIntervalCoverage(t *testing.T) {
	const trials = 20000
	r := random(1)
	for _, n := range []int{6, 7, 8, 11, 20, 40} {
		held, confidence := 0, 0.0
		for range trials {
			in, err := MedianInterval(skewed(r, n), 0.95)
			if err != nil {
				t.Fatal(err)
			}
			if in.Low <= 1 && 1 <= in.High {
				held++
			}
			confidence = in.Confidence
		}
		share := float64(held) / trials
		if math.Abs(share-confidence) > 4*math.Sqrt(confidence*(1-confidence)/trials) {
			t.Errorf("n=%d: the interval held the median in %.4f of the trials and claims %.4f", n, share, confidence)
		}
	}
}

func TestMannWhitney(t *testing.T) {
	tests := []struct {
		name string
		a, b []float64
		want float64
	}{
		{"nothing", nil, []float64{1}, 1},
		{"apart, 3 and 3", []float64{1, 2, 3}, []float64{4, 5, 6}, 0.1},
		{"apart, 6 and 6", []float64{1, 2, 3, 4, 5, 6}, []float64{7, 8, 9, 10, 11, 12}, 2.0 / 924},
		{"one overlap", []float64{1, 2, 4}, []float64{3, 5, 6}, 0.2},
		{"equal", []float64{5, 5, 5}, []float64{5, 5, 5}, 1},
		// {1,1} against {1,2}: the rank sums 4, 4, 4 (doubled mid ranks 4+4=8)
		// and 8: every choice is as far from the mean as this one.
		{"ties", []float64{1, 1}, []float64{1, 2}, 1},
		{"ties apart", []float64{1, 1, 1}, []float64{2, 2, 2}, 0.1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := MannWhitney(tt.a, tt.b); !near(got, tt.want) {
				t.Errorf("MannWhitney(%v, %v) = %v, want %v", tt.a, tt.b, got, tt.want)
			}
			if got := MannWhitney(tt.b, tt.a); !near(got, tt.want) {
				t.Errorf("sides exchanged: %v, want %v", got, tt.want)
			}
		})
	}
}

func TestMannWhitneyAgreesWithPerf(t *testing.T) {
	r := random(2)
	perf := func(values []float64) *benchmath.Sample {
		return benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
	}
	for range 300 {
		a, b := skewed(r, 1+r.IntN(9)), skewed(r, 1+r.IntN(9))
		want := benchmath.AssumeNothing.Compare(perf(a), perf(b)).P
		if got := MannWhitney(a, b); !near(got, want) {
			t.Fatalf("MannWhitney(%v, %v) = %v, golang.org/x/perf says %v", a, b, got, want)
		}
	}
}

// Beyond the exact limit the approximation must join on without a step.
func TestMannWhitneyApproximation(t *testing.T) {
	r := random(3)
	for range 20 {
		a, b := skewed(r, exactRanks/2), skewed(r, exactRanks/2)
		exact := MannWhitney(a, b)
		more := MannWhitney(append(a, 1), b) // a value in the middle
		if math.Abs(exact-more) > 0.06 {
			t.Errorf("p jumps from %v to %v at the limit", exact, more)
		}
	}
	equal := make([]float64, exactRanks)
	if got := MannWhitney(equal, equal); got != 1 {
		t.Errorf("many equal values: p = %v, want 1", got)
	}
}

func TestLeastMannWhitney(t *testing.T) {
	for n, want := range map[int]float64{1: 1, 3: 0.1, 4: 2.0 / 70, 6: 2.0 / 924} {
		if got := MinMannWhitney(n, n); !near(got, want) {
			t.Errorf("LeastMannWhitney(%d, %d) = %v, want %v", n, n, got, want)
		}
	}
}

func TestHolm(t *testing.T) {
	got := Holm([]float64{0.01, 0.04, 0.03, 0.005})
	want := []float64{0.03, 0.06, 0.06, 0.02}
	if len(got) != len(want) {
		t.Fatalf("Holm gave %v", got)
	}
	for i := range want {
		if !near(got[i], want[i]) {
			t.Errorf("Holm[%d] = %v, want %v", i, got[i], want[i])
		}
	}
	if got := Holm(nil); len(got) != 0 {
		t.Errorf("Holm of nothing = %v", got)
	}
}

func TestRatios(t *testing.T) {
	values := map[int]float64{1: 8, 2: 9, 3: 5}
	tests := []struct {
		name   string
		base   map[int]float64
		want   []float64
		wantOK bool
	}{
		{"paired by key", map[int]float64{3: 10, 1: 16, 4: 1}, []float64{0.5, 0.5}, true},
		{"no common key", map[int]float64{7: 1}, nil, false},
		{"base of zero", map[int]float64{1: 16, 2: 0}, nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := Ratios(values, tt.base)
			if diff := cmp.Diff(tt.want, got); diff != "" || ok != tt.wantOK {
				t.Errorf("Ratios = %v, %v; want %v, %v", got, ok, tt.want, tt.wantOK)
			}
		})
	}
}

func TestSignedRank(t *testing.T) {
	tests := []struct {
		name   string
		ratios []float64
		want   float64
	}{
		{"none", nil, 1},
		{"all one", []float64{1, 1, 1}, 1},
		{"one", []float64{2}, 1},
		{"six below", []float64{0.5, 0.6, 0.7, 0.8, 0.55, 0.65}, 2.0 / 64},
		{"same size", []float64{0.5, 0.5, 0.5, 0.5}, 2.0 / 16},
		{"balanced", []float64{0.5, 2}, 1},
		{"with zero", []float64{0, 0.5, 0.5}, 2.0 / 8},
		{"a ratio of 1", []float64{1, 0.5, 0.5, 0.5}, 2.0 / 8},
		// Of all signs of the ranks 1 to 4 these have sums as far from 5: 0, 1, 9, 10.
		{"one the other way", []float64{1.1, 0.5, 0.4, 0.3}, 4.0 / 16},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := SignedRank(tt.ratios); !near(got, tt.want) {
				t.Errorf("SignedRank(%v) = %v, want %v", tt.ratios, got, tt.want)
			}
		})
	}
}

func TestTrend(t *testing.T) {
	tests := []struct {
		name   string
		values []float64
		want   Drift
	}{
		{"one", []float64{1}, Drift{0, 1}},
		{"rising, 4", []float64{1, 2, 3, 4}, Drift{1, 2.0 / 24}},
		{"falling, 5", []float64{10, 8, 6, 4, 2}, Drift{-2, 2.0 / 120}},
		{"flat", []float64{3, 3, 3, 3}, Drift{0, 1}},
		{"up and down", []float64{1, 3, 2}, Drift{0.5, 1}},
		// Of the three orders of {1,1,2} two end as far from no trend.
		{"tie", []float64{1, 1, 2}, Drift{0.5, 2.0 / 3}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Trend(tt.values)
			if !near(got.Slope, tt.want.Slope) || !near(got.P, tt.want.P) {
				t.Errorf("Trend(%v) = %+v, want %+v", tt.values, got, tt.want)
			}
		})
	}
}

// The exact distribution must equal the one found by trying all orders.
func TestTrendAgainstAllOrders(t *testing.T) {
	r := random(4)
	score := func(values []float64) float64 {
		s := 0.0
		for i, early := range values {
			for _, late := range values[i+1:] {
				if late > early {
					s++
				} else if late < early {
					s--
				}
			}
		}
		return math.Abs(s)
	}
	for range 30 {
		values := make([]float64, 2+r.IntN(5))
		for i := range values {
			values[i] = float64(r.IntN(4)) // few values: many ties
		}
		far, all, limit := 0, 0, score(values)
		permute(slices.Clone(values), func(order []float64) {
			all++
			if score(order) >= limit {
				far++
			}
		})
		if got, want := Trend(values).P, float64(far)/float64(all); !near(got, want) {
			t.Errorf("Trend(%v).P = %v, all orders say %v", values, got, want)
		}
	}
}

func permute(values []float64, visit func([]float64)) {
	var rec func(int)
	rec = func(k int) {
		if k == len(values) {
			visit(values)
			return
		}
		for i := k; i < len(values); i++ {
			values[k], values[i] = values[i], values[k]
			rec(k + 1)
			values[k], values[i] = values[i], values[k]
		}
	}
	rec(0)
}

// Whatever the values: every p is in (0, 1], the order of exchangeable values
// does not matter, nor does the unit.
func TestInvariance(t *testing.T) {
	r := random(5)
	for range 300 {
		a, b := skewed(r, 2+r.IntN(8)), skewed(r, 2+r.IntN(8))
		if r.IntN(2) == 0 { // with ties
			for i := range a {
				a[i] = math.Ceil(a[i])
			}
			for i := range b {
				b[i] = math.Ceil(b[i])
			}
		}
		shuffled := slices.Clone(a)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		scaled := func(values []float64) []float64 {
			out := slices.Clone(values)
			for i := range out {
				out[i] *= 1024
			}
			return out
		}

		for name, p := range map[string][2]float64{
			"MannWhitney shuffled": {MannWhitney(a, b), MannWhitney(shuffled, b)},
			"MannWhitney scaled":   {MannWhitney(a, b), MannWhitney(scaled(a), scaled(b))},
			"SignedRank shuffled":  {SignedRank(a), SignedRank(shuffled)},
			"Trend scaled":         {Trend(a).P, Trend(scaled(a)).P},
		} {
			if !(p[0] > 0 && p[0] <= 1) {
				t.Fatalf("%s: p = %v of %v and %v", name, p[0], a, b)
			}
			if !near(p[0], p[1]) {
				t.Fatalf("%s: p = %v and %v of %v and %v", name, p[0], p[1], a, b)
			}
		}
		if Median(a) != Median(shuffled) {
			t.Fatalf("Median(%v) depends on the order", a)
		}
		x, errX := MedianInterval(a, 0.9)
		y, errY := MedianInterval(shuffled, 0.9)
		if x != y || (errX == nil) != (errY == nil) {
			t.Fatalf("MedianInterval(%v) depends on the order", a)
		}
		for i, p := range Holm(a) {
			if p < min(1, a[i]) || p > 1 {
				t.Fatalf("Holm(%v)[%d] = %v", a, i, p)
			}
		}
	}
}

// Under the null hypothesis a test at level alpha must not reject more often
// than alpha says.
func TestFalseAlarms(t *testing.T) {
	const trials, alpha = 4000, 0.05
	r := random(6)
	rejected := map[string]int{}
	for range trials {
		a, b := skewed(r, 6), skewed(r, 6)
		ratios := make([]float64, len(a))
		for i := range a {
			ratios[i] = a[i] / b[i]
		}
		for name, p := range map[string]float64{
			"MannWhitney": MannWhitney(a, b),
			"SignedRank":  SignedRank(ratios),
			"Trend":       Trend(a).P,
		} {
			if p <= alpha {
				rejected[name]++
			}
		}
	}
	for name, n := range rejected {
		if share := float64(n) / trials; share > alpha+4*math.Sqrt(alpha*(1-alpha)/trials) {
			t.Errorf("%s rejected %.3f of the null cases at level %v", name, share, alpha)
		}
	}
}

func TestLowerMedian(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{4, 1}, 1}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 3, 2, 1}, 2}} {
		if got := LowerMedian(tt.values); got != tt.want {
			t.Errorf("LowerMedian(%v) = %v, want %v", tt.values, got, tt.want)
		}
	}
	if got := LowerMedian(nil); !math.IsNaN(got) {
		t.Errorf("LowerMedian of nothing = %v", got)
	}
}
