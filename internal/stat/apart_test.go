package stat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// noises are what rounds may look like.
var noises = map[string]func(r *rand.Rand) float64{
	"normal":     (*rand.Rand).NormFloat64,
	"heavy":      func(r *rand.Rand) float64 { return r.NormFloat64() / math.Sqrt(r.ExpFloat64()) }, // Student's t, 2 degrees
	"two levels": func(r *rand.Rand) float64 { return 0.1*r.NormFloat64() + 1.5*float64(r.IntN(2)) },
}

// simulated rounds: contender c's values are exp(0.03·(shift[c] + noise·spread[c]
// + what the round does to all)).
func simulatedRounds(r *rand.Rand, noise func(*rand.Rand) float64, rounds int, shift, spread []float64) [][]float64 {
	series := make([][]float64, len(shift))
	for c := range series {
		series[c] = make([]float64, rounds)
	}
	for round := range rounds {
		shared := 3 * r.NormFloat64()
		for c := range series {
			series[c][round] = math.Exp(0.03 * (shared + shift[c] + spread[c]*noise(r)))
		}
	}
	return series
}

func ones(n int) []float64 { return slices.Repeat([]float64{1}, n) }

// Of series that are alike, none is told apart more often than alpha says, also
// where one is noisier than all others and where one lies far off.
func TestApartFalseAlarms(t *testing.T) {
	const alpha = 0.05
	trials := needs.Trials(600, 120)
	for name, noise := range noises {
		for _, contenders := range []int{3, 5, 9} {
			for _, rounds := range []int{6, 7, 9} {
				noisy := ones(contenders)
				if name != "two levels" { // whose mean would shift with it
					noisy[contenders-1] = 5
				}
				far := make([]float64, contenders)
				far[0] = 100
				for kind, c := range map[string]struct{ shift, spread []float64 }{
					"alike":        {make([]float64, contenders), ones(contenders)},
					"one noisy":    {make([]float64, contenders), noisy},
					"one far away": {far, ones(contenders)},
				} {
					r, alarms := random(uint64(contenders*rounds)), 0
					for range trials {
						p := ComparePairs(simulatedRounds(r, noise, rounds, c.shift, c.spread), alpha, 1)
						alarm := false
						for i := range p {
							for j := range p {
								alarm = alarm || p[i][j] <= alpha && c.shift[i] == c.shift[j]
							}
						}
						if alarm {
							alarms++
						}
					}
					if share := float64(alarms) / float64(trials); share > alpha+3*math.Sqrt(alpha*(1-alpha)/float64(trials)) {
						t.Errorf("%s, %s, %d contenders, %d rounds: %.3f of the runs have a false difference", name, kind, contenders, rounds, share)
					}
				}
			}
		}
	}
}

// What docs/dev/simulations.md states: how often a difference of so many standard
// deviations of a contender's own noise is found between one contender and another.
func TestApartPower(t *testing.T) {
	const alpha = 0.05
	trials := needs.Trials(600, 120)
	for _, tt := range []struct {
		contenders, rounds int
		shift, want        float64
	}{
		{5, 7, 2, 0.72}, {5, 7, 3, 0.98}, {9, 7, 2, 0.54}, {9, 7, 3, 0.95}, {9, 9, 2, 0.82}, {9, 12, 2, 0.95},
	} {
		shift := make([]float64, tt.contenders)
		shift[0] = tt.shift
		r, found := random(uint64(tt.contenders+tt.rounds)), 0
		for range trials {
			if p := ComparePairs(simulatedRounds(r, noises["normal"], tt.rounds, shift, ones(tt.contenders)), alpha, 1); p[0][1] <= alpha {
				found++
			}
		}
		if power := float64(found) / float64(trials); math.Abs(power-tt.want) > 3*math.Sqrt(0.25/float64(trials)) {
			t.Errorf("%d contenders, %d rounds, %g standard deviations: found in %.3f, stated is %.2f", tt.contenders, tt.rounds, tt.shift, power, tt.want)
		}
	}
}

func TestApart(t *testing.T) {
	none := math.NaN()
	series := [][]float64{
		{100, 110, 90, 105, 95, 102, 98},
		{101, 109, 91, 104, 96, 101, 99},
		{50, 55, 45, 52, 48, 51, 49},
		{3, none, 3, none, 3, 3, 3}, // thirty times slower, in five rounds
		{0.9, 1, 0.8, none, 0.9, 0.95, 0.85},
	}
	p := ComparePairs(series, 0.05, 1)
	var got []string
	for i := range p {
		for j := i + 1; j < len(p); j++ {
			switch {
			case math.IsNaN(p[i][j]):
				got = append(got, fmt.Sprintf("%d %d untestable", i, j))
			case p[i][j] <= 0.05:
				got = append(got, fmt.Sprintf("%d %d apart", i, j))
			}
		}
	}
	want := []string{"0 2 apart", "0 3 untestable", "0 4 apart", "1 2 apart", "1 3 untestable", "1 4 apart", "2 3 untestable", "2 4 apart", "3 4 untestable"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if p := ComparePairs([][]float64{{1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1}}, 0.05, 1); p[0][1] != 1 {
		t.Errorf("equal series: p %v", p[0][1])
	}
	if p := ComparePairs([][]float64{{0, 0, 0, 0, 0, 0}, {1, 2, 1, 1, 2, 1}}, 0.05, 1); p[0][1] != 1.0/32 {
		t.Errorf("zeros: p %v", p[0][1])
	}
	if p := ComparePairs(nil, 0.05, 1); len(p) != 0 {
		t.Errorf("none: %v", p)
	}
}

func TestGroups(t *testing.T) {
	for _, tt := range []struct {
		name  string
		n     int
		apart [][2]int
		want  [][]int
	}{
		{"none", 0, nil, [][]int{{}}},
		{"alike", 3, nil, [][]int{{0, 1, 2}}},
		{"apart", 2, [][2]int{{0, 1}}, [][]int{{0}, {1}}},
		{"a chain", 4, [][2]int{{0, 2}, {0, 3}, {1, 3}}, [][]int{{0, 1}, {1, 2}, {2, 3}}},
		{"one between", 3, [][2]int{{0, 2}}, [][]int{{0, 1}, {1, 2}}},
		{"a noisy one", 4, [][2]int{{0, 2}, {0, 3}, {2, 3}}, [][]int{{0, 1}, {1, 2}, {1, 3}}},
	} {
		got := Groups(tt.n, func(i, j int) bool { return slices.Contains(tt.apart, [2]int{i, j}) })
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
	}
}

// The interval of paired ratios holds the true ratio as often as it says, and
// leaves 1 out exactly where the test tells the ratios from 1.
func TestPairedShift(t *testing.T) {
	const times, truth = 2000, 1.3
	for name, noise := range noises {
		r := random(31)
		for _, n := range []int{6, 7, 9, 12, 61} {
			held, total := 0, 0
			for range times {
				ratios := make([]float64, n)
				for i := range ratios {
					ratios[i] = truth * math.Exp(0.3*(noise(r)-noise(r)))
				}
				s := PairedShift(ratios, 0.95)
				if s.Low <= truth && truth <= s.High {
					held++
				}
				if !(s.Low <= s.Ratio && s.Ratio <= s.High) {
					t.Fatalf("%v: %v", ratios, s)
				}
				if inside := s.Low <= 1 && 1 <= s.High; n <= 60 && inside != (SignedRank(ratios) > 0.05) {
					t.Fatalf("interval %g–%g, p %g of %v", s.Low, s.High, SignedRank(ratios), ratios)
				}
				total++
			}
			if share := float64(held) / times; share < 0.94 {
				t.Errorf("%s, %d ratios: the interval holds the truth in %.3f", name, n, share)
			}
		}
	}
	nan := math.NaN()
	for name, tt := range map[string]struct {
		ratios []float64
		want   Shift
	}{
		"none":    {nil, Shift{nan, nan, nan}},
		"one":     {[]float64{2}, Shift{2, nan, nan}},
		"few":     {[]float64{1, 4}, Shift{2, nan, nan}},
		"doubled": {[]float64{2, 2, 2, 2, 2, 2}, Shift{2, 2, 2}},
		"nothing": {[]float64{0, 0, 0, 0, 0, 0}, Shift{0, 0, 0}},
		"seven":   {[]float64{1, 2, 4, 8, 16, 32, 64}, Shift{8, 2, 32}},
	} {
		if diff := cmp.Diff(fmt.Sprintf("%.6g", tt.want), fmt.Sprintf("%.6g", PairedShift(tt.ratios, 0.95))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
