package stat

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The whole simulation of docs/statistics.md takes minutes:
//
//	go test ./internal/stat -run TestSimulation -simulate 1000 -timeout 1h
//
// It writes its table to the page. Without the flag a few runs of some cells are made.
var simulate = flag.Int("simulate", 0, "simulate so many runs of every cell, and write the table of docs/statistics.md")

// shapes are what a round does to one contender, as a logarithm, in units of about 5 %.
var shapes = []struct {
	name  string
	drift float64 // how much a round's machine resembles that of the round before
	own   float64 // how much a contender's own noise does
	draw  func(r *rand.Rand) float64
}{
	{"normal", 0, 0, func(r *rand.Rand) float64 { return r.NormFloat64() }},
	{"t, 2 degrees", 0, 0, func(r *rand.Rand) float64 {
		return r.NormFloat64() / math.Sqrt(r.ExpFloat64()) // a chi-square of 2 degrees over 2 is exponential
	}},
	{"two levels", 0, 0, func(r *rand.Rand) float64 { return 8*float64(r.IntN(2)) + 0.5*r.NormFloat64() }},
	{"machine drifts", 0.8, 0, func(r *rand.Rand) float64 { return r.NormFloat64() }},
	{"own noise drifts", 0, 0.3, func(r *rand.Rand) float64 { return r.NormFloat64() }},
}

// simulated run: values by contender and round, of equal contenders but for the last, which
// is so many standard deviations better.
func shapedRun(r *rand.Rand, noise, contenders, rounds int, better float64) [][]float64 {
	n := shapes[noise]
	series := make([][]float64, contenders)
	machine, own := 2*r.NormFloat64(), make([]float64, contenders)
	for round := range rounds {
		if round > 0 {
			machine = n.drift*machine + 2*math.Sqrt(1-n.drift*n.drift)*r.NormFloat64()
		}
		for c := range series {
			fresh := n.draw(r)
			if round > 0 {
				fresh = n.own*own[c] + math.Sqrt(1-n.own*n.own)*fresh
			}
			own[c] = fresh
			v := machine + fresh
			if c == contenders-1 {
				v += better
			}
			series[c] = append(series[c], math.Exp(0.05*v))
		}
	}
	return series
}

// cell is what a number of simulated runs gave.
type cell struct {
	runs, falseGroups            int
	ratios, ratiosHeld           int
	medians, mediansHeld         int
	independent, independentHeld int
}

func simulateCell(r *rand.Rand, noise, contenders, rounds, runs int) cell {
	truth := func() float64 {
		var many []float64
		for range 4000 {
			many = append(many, shapedRun(r, noise, 1, 1, 0)[0][0])
		}
		return Median(many)
	}()
	got := cell{runs: runs}
	for range runs {
		series := shapedRun(r, noise, contenders, rounds, 0)
		if slices.ContainsFunc(Apart(series, 0.05), func(row []float64) bool {
			return slices.ContainsFunc(row, func(p float64) bool { return p <= 0.05 })
		}) {
			got.falseGroups++
		}
		ratios := make([]float64, rounds)
		for round := range ratios {
			ratios[round] = series[1][round] / series[0][round]
		}
		if s := PairedShift(ratios, 0.95); s.Bounded() {
			got.ratios++
			if s.Low <= 1 && 1 <= s.High {
				got.ratiosHeld++
			}
		}
		if in, err := MedianInterval(series[0], 0.95); err == nil {
			got.medians++
			if in.Low <= truth && truth <= in.High {
				got.mediansHeld++
			}
		}
		other := shapedRun(r, noise, 1, rounds, 0)[0]
		if s := RatioShift(series[0], other, 0.95); s.Bounded() {
			got.independent++
			if s.Low <= 1 && 1 <= s.High {
				got.independentHeld++
			}
		}
	}
	return got
}

func (c *cell) add(o cell) {
	c.runs, c.falseGroups = c.runs+o.runs, c.falseGroups+o.falseGroups
	c.ratios, c.ratiosHeld = c.ratios+o.ratios, c.ratiosHeld+o.ratiosHeld
	c.medians, c.mediansHeld = c.medians+o.medians, c.mediansHeld+o.mediansHeld
	c.independent, c.independentHeld = c.independent+o.independent, c.independentHeld+o.independentHeld
}

func share(part, of int) string {
	if of == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f", 100*float64(part)/float64(of))
}

func TestSimulation(t *testing.T) {
	whole, runs := *simulate > 0, *simulate
	contenders, rounds := []int{3, 5, 9}, []int{5, 6, 7, 8, 9, 10, 11, 12}
	if !whole {
		runs, contenders, rounds = 60, []int{3, 9}, []int{5, 7}
	}
	r := rand.New(rand.NewPCG(16, 10))
	var page strings.Builder
	fmt.Fprintf(&page, "\n| noise | contenders | false groups, %% of runs | worst number of rounds | ratio held | two runs' ratio held | median held |\n|---|---:|---:|---:|---:|---:|---:|\n")
	for noise, n := range shapes {
		for _, k := range contenders {
			var all cell
			worst, at := 0.0, 0
			for _, m := range rounds {
				c := simulateCell(r, noise, k, m, runs)
				all.add(c)
				if part := float64(c.falseGroups) / float64(c.runs); part >= worst {
					worst, at = part, m
				}
			}
			fmt.Fprintf(&page, "| %s | %d | %s | %.1f at %d | %s | %s | %s |\n", n.name, k, share(all.falseGroups, all.runs), 100*worst, at,
				share(all.ratiosHeld, all.ratios), share(all.independentHeld, all.independent), share(all.mediansHeld, all.medians))
			if n.own > 0 {
				continue // shown for what it costs
			}
			margin := 3 * math.Sqrt(0.05*0.95*float64(all.runs))
			if float64(all.falseGroups) > 0.05*float64(all.runs)+margin {
				t.Errorf("%s, %d contenders: false groups in %d of %d runs", n.name, k, all.falseGroups, all.runs)
			}
			if float64(all.ratiosHeld) < 0.95*float64(all.ratios)-margin {
				t.Errorf("%s, %d contenders: the ratio's interval held in %d of %d", n.name, k, all.ratiosHeld, all.ratios)
			}
			if n.drift == 0 && (float64(all.mediansHeld) < 0.95*float64(all.medians)-margin || float64(all.independentHeld) < 0.95*float64(all.independent)-margin) {
				t.Errorf("%s, %d contenders: the median's interval held in %d of %d, that of two runs in %d of %d", n.name, k, all.mediansHeld, all.medians, all.independentHeld, all.independent)
			}
		}
	}
	fmt.Fprintf(&page, "\n| contenders | rounds | 2 | 3 |\n|---:|---:|---:|---:|\n")
	for _, shape := range [][2]int{{5, 7}, {9, 7}, {9, 9}, {9, 12}} {
		var found [2]int
		for i, better := range []float64{2, 3} {
			for range runs {
				p := Apart(shapedRun(r, 0, shape[0], shape[1], better), 0.05)
				if p[0][shape[0]-1] <= 0.05 {
					found[i]++
				}
			}
		}
		fmt.Fprintf(&page, "| %d | %d | %.2f | %.2f |\n", shape[0], shape[1], float64(found[0])/float64(runs), float64(found[1])/float64(runs))
	}
	t.Log(page.String())
	if !whole {
		return
	}
	file := filepath.Join("..", "..", "docs", "statistics.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begin := strings.Cut(string(text), "<!-- simulation -->\n")
	_, after, end := strings.Cut(rest, "<!-- /simulation -->")
	if !begin || !end {
		t.Fatalf("%s has no place for the table", file)
	}
	if err := os.WriteFile(file, []byte(before+"<!-- simulation -->\n"+page.String()+"\n<!-- /simulation -->"+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
