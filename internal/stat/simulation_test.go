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
	"sync"
	"testing"

	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// The whole simulation of docs/dev/simulations.md takes minutes:
//
//	go test ./internal/stat -run TestSimulation -simulate 1000 -timeout 1h
//
// It writes its table to the page. Without the flag a few runs of some cells are made.
var simulate = flag.Int("simulate", 0, "simulate so many runs of every cell, and write the table of docs/dev/simulations.md")

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
// is so many standard deviations better; and what each round did to all of them.
func shapedRun(r *rand.Rand, noise, contenders, rounds int, better float64) (series [][]float64, hour []float64) {
	n := shapes[noise]
	series = make([][]float64, contenders)
	machine, own := 2*r.NormFloat64(), make([]float64, contenders)
	for round := range rounds {
		if round > 0 {
			machine = n.drift*machine + 2*math.Sqrt(1-n.drift*n.drift)*r.NormFloat64()
		}
		hour = append(hour, machine)
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
	return series, hour
}

// ofHour are very many rounds of a contender, on a machine that does what it did in these.
func ofHour(r *rand.Rand, noise int, hour []float64) []float64 {
	var many []float64
	for _, machine := range hour {
		for range 3000 / len(hour) {
			many = append(many, math.Exp(0.05*(machine+shapes[noise].draw(r))))
		}
	}
	return many
}

// cell is what a number of simulated runs gave.
type cell struct {
	runs, falseGroups            int
	ratios, ratiosHeld           int
	medians, mediansHeld         int
	independent, independentHeld int
	tails, tailsHeld             int // intervals of a p99 of all rounds' requests
	tailRatios, tailRatiosHeld   int
	lasting                      int // runs in which the noise of a round was found in the next
	// Of what very many rounds would have given while the machine did what it did in the run.
	mediansOfHour, independentOfHour, tailsOfHour int
}

// tailOf is the p99 of so many rounds at those levels, with its truth and that of the hour,
// and its ratio to that of another contender who is a quarter slower.
func (c *cell) tailOf(r *rand.Rand, levels, others []float64, widen, truth, ofHour float64) {
	var own, beside []Requests
	for round := range levels {
		own = append(own, scaledRequests(r, 1000, levels[round]))
		beside = append(beside, scaledRequests(r, 1000, 1.25*others[round]))
	}
	if low, high, ok := QuantileInterval(own, 0.99, 0.95); ok {
		c.tails++
		if low <= truth && truth <= high {
			c.tailsHeld++
		}
		if low <= ofHour && ofHour <= high {
			c.tailsOfHour++
		}
	}
	if s, _ := QuantileRatio(beside, own, 0.99, 0.95, widen); s.Bounded() {
		c.tailRatios++
		if s.Low <= 1.25 && 1.25 <= s.High {
			c.tailRatiosHeld++
		}
	}
}

// scaledRequests are n latencies of a round, all multiplied by the level.
func scaledRequests(r *rand.Rand, n int, level float64) Requests {
	all := requests(r, n, 1, false)
	for i := range all.logs {
		all.logs[i] += math.Log(level)
	}
	return all
}

// tailTruth is the p99 of rounds at those levels.
func tailTruth(r *rand.Rand, levels []float64) float64 {
	var many []Requests
	for _, level := range levels {
		many = append(many, scaledRequests(r, 100, level))
	}
	return math.Exp(pooledQuantile(many, nil, 0, 0.99))
}

func eachTenth(values []float64) (some []float64) {
	for i := 0; i < len(values); i += 10 {
		some = append(some, values[i])
	}
	return some
}

// manyRounds are levels of very many runs.
func manyRounds(r *rand.Rand, noise int) []float64 {
	var many []float64
	for range 6000 {
		series, _ := shapedRun(r, noise, 1, 1, 0)
		many = append(many, series[0][0])
	}
	return many
}

func simulateCell(r *rand.Rand, noise, contenders, rounds, runs int, tail float64) cell {
	truth := Median(manyRounds(r, noise))
	got := cell{runs: runs}
	for run := range runs {
		series, hour := shapedRun(r, noise, contenders, rounds, 0)
		serial, now := Serially([][][]float64{series}), ofHour(r, noise, hour)
		widen := serial.Inflation()
		if slices.ContainsFunc(ComparePairs(series, 0.05, widen), func(row []float64) bool {
			return slices.ContainsFunc(row, func(p float64) bool { return p <= 0.05 })
		}) {
			got.falseGroups++
		}
		ratios := make([]float64, rounds)
		for round := range ratios {
			ratios[round] = series[1][round] / series[0][round]
		}
		if s, _ := ComparePaired(ratios, 0.95, widen); s.Bounded() {
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
			if m := Median(now); in.Low <= m && m <= in.High {
				got.mediansOfHour++
			}
		}
		if serial.P <= 0.05 {
			got.lasting++
		}
		if contenders == 3 && run%4 == 0 { // they take most of the time, and are no others with more contenders
			got.tailOf(r, series[0], series[1], widen, tail, tailTruth(r, eachTenth(now)))
		}
		others, then := shapedRun(r, noise, 1, rounds, 0)
		if s := RatioShift(series[0], others[0], 0.95); s.Bounded() {
			got.independent++
			if ratio := math.Exp(0.05 * (Mean(then) - Mean(hour))); s.Low <= ratio && ratio <= s.High {
				got.independentOfHour++
			}
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
	c.tails, c.tailsHeld = c.tails+o.tails, c.tailsHeld+o.tailsHeld
	c.tailRatios, c.tailRatiosHeld = c.tailRatios+o.tailRatios, c.tailRatiosHeld+o.tailRatiosHeld
	c.lasting += o.lasting
	c.mediansOfHour, c.independentOfHour, c.tailsOfHour = c.mediansOfHour+o.mediansOfHour, c.independentOfHour+o.independentOfHour, c.tailsOfHour+o.tailsOfHour
}

// check holds the cells of one noise and number of contenders against what is stated.
func (c *cell) check(t *testing.T, name string, drift, own float64) {
	t.Helper()
	margin := func(of int) float64 { return 3 * math.Sqrt(0.05*0.95*float64(of)) }
	few := func(what string, count, of int) {
		if float64(count) > 0.05*float64(of)+margin(of) || of > 5000 && float64(count) > 0.05*float64(of) {
			t.Errorf("%s: %s in %d of %d runs", name, what, count, of)
		}
	}
	held := func(what string, count, of int) {
		if float64(count) < 0.95*float64(of)-margin(of) || of > 5000 && float64(count) < 0.94*float64(of) {
			t.Errorf("%s: the interval of %s held in %d of %d", name, what, count, of)
		}
	}
	few("false groups", c.falseGroups, c.runs)
	if own == 0 {
		few("noise that lasts", c.lasting, c.runs)
	}
	held("the ratio", c.ratiosHeld, c.ratios)
	held("the ratio of p99", c.tailRatiosHeld, c.tailRatios)
	if drift > 0 {
		held("the hour's median", c.mediansOfHour, c.medians)
		held("the ratio of two hours", c.independentOfHour, c.independent)
		held("the hour's p99", c.tailsOfHour, c.tails)
		return
	}
	held("the median", c.mediansHeld, c.medians)
	held("the ratio of two runs", c.independentHeld, c.independent)
	held("the p99", c.tailsHeld, c.tails)
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
		runs, contenders, rounds = needs.Trials(60, 20), []int{3, 9}, []int{5, 7}
	}
	rows := make([]strings.Builder, len(shapes)+1)
	var all sync.WaitGroup
	for noise, n := range shapes {
		all.Go(func() {
			r := rand.New(rand.NewPCG(16, uint64(noise)))
			tail := tailTruth(r, manyRounds(r, noise))
			for _, k := range contenders {
				var sum cell
				worst, at := 0.0, 0
				for _, m := range rounds {
					c := simulateCell(r, noise, k, m, runs, tail)
					sum.add(c)
					if part := float64(c.falseGroups) / float64(c.runs); part >= worst {
						worst, at = part, m
					}
				}
				held := func(count, ofHour, of int) string {
					if n.drift == 0 || of == 0 {
						return share(count, of)
					}
					return share(ofHour, of) + " (" + share(count, of) + ")"
				}
				fmt.Fprintf(&rows[noise], "| %s | %d | %s | %.1f at %d | %s | %s | %s | %s | %s | %s |\n", n.name, k, share(sum.falseGroups, sum.runs), 100*worst, at,
					share(sum.lasting, sum.runs), share(sum.ratiosHeld, sum.ratios), share(sum.tailRatiosHeld, sum.tailRatios), held(sum.independentHeld, sum.independentOfHour, sum.independent),
					held(sum.mediansHeld, sum.mediansOfHour, sum.medians), held(sum.tailsHeld, sum.tailsOfHour, sum.tails))
				sum.check(t, fmt.Sprintf("%s, %d contenders", n.name, k), n.drift, n.own)
			}
		})
	}
	all.Go(func() { powerTable(t, &rows[len(shapes)], 3*runs) })
	all.Wait()
	var page strings.Builder
	page.WriteString("\n| noise | contenders | false groups, % of runs | worst number of rounds | found to last | ratio held | p99 ratio held | two runs' ratio held | median held | p99 held |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for i := range rows {
		page.WriteString(rows[i].String())
	}
	t.Log(page.String())
	if whole {
		writeSimulation(t, page.String())
	}
}

// powerTable is how often a difference between two contenders is found: of the size that
// mdd states to be found in 80 %, and of two and three standard deviations of one.
func powerTable(t *testing.T, w *strings.Builder, runs int) {
	t.Helper()
	r := rand.New(rand.NewPCG(16, 10))
	found := func(contenders, rounds int, better func(by float64) float64) float64 {
		n := 0
		for range runs {
			series, _ := shapedRun(r, 0, contenders, rounds, 0)
			serial := Serially([][][]float64{series}) // whatever the differences are
			for round := range series[contenders-1] {
				series[contenders-1][round] *= math.Exp(0.05 * better(serial.DetectableBy()))
			}
			if ComparePairs(series, 0.05, serial.Inflation())[0][contenders-1] <= 0.05 {
				n++
			}
		}
		return float64(n) / float64(runs)
	}
	deviations := func(by float64) func(float64) float64 { return func(float64) float64 { return by } }
	fmt.Fprintf(w, "\n| contenders | rounds | mdd | 2 | 3 |\n|---:|---:|---:|---:|---:|\n")
	for _, shape := range [][2]int{{3, 9}, {5, 7}, {5, 10}, {9, 7}, {9, 11}, {9, 14}} {
		k, m := shape[0], shape[1]
		mdd := func(by float64) float64 { return math.Sqrt2 * DetectableApart(m, k) * by }
		stated := found(k, m, mdd)
		if math.Abs(stated-DetectPower) > 0.03+2.5*math.Sqrt(DetectPower*(1-DetectPower)/float64(runs)) {
			t.Errorf("%d contenders, %d rounds: a difference of the size of the mdd is found in %.2f of the runs", k, m, stated)
		}
		fmt.Fprintf(w, "| %d | %d | %.2f | %.2f | %.2f |\n", k, m, stated, found(k, m, deviations(2)), found(k, m, deviations(3)))
	}
}

func writeSimulation(t *testing.T, table string) {
	t.Helper()
	file := filepath.Join("..", "..", "docs", "dev", "simulations.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begin := strings.Cut(string(text), "<!-- simulation -->\n")
	_, after, end := strings.Cut(rest, "<!-- /simulation -->")
	if !begin || !end {
		t.Fatalf("%s has no place for the table", file)
	}
	if err := os.WriteFile(file, []byte(before+"<!-- simulation -->\n"+table+"\n<!-- /simulation -->"+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
