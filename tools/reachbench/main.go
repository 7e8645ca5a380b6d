// Program reachbench measures how small a difference `make demo` shows on this machine,
// left alone and beside a busy neighbour: it runs the demo's contenders some times, with
// -busy every second time while a process uses 30 % of a CPU for half of the time, and
// prints for each figure the smallest difference that would have shown (mdd) and how far
// the intervals of the ratios reach, of a typical contender, and whether the order that
// the kernel dictates came out, and which share of the run's time was measured. With -busy it also prints each contender's ratios without
// and with the neighbour. docs/dev/measurement.md has the result. Needs a quiet machine otherwise.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/selftest"
	"github.com/cnibench/cnibench/internal/stat"
)

// order is what every machine must find: each contender does more for a packet than the
// one before.
var order = []string{"host", "flannel-host-gw", "flannel-vxlan"}

// figures are those whose reach is printed.
var figures = result.MainMetrics(result.Traffic, result.Typical, result.Tail, result.Cost)

// report is what is read of `cnibench report --format json`.
type report struct {
	Run struct {
		Rounds        int
		MeasuredShare float64 `json:"measured_share"`
	}
	Results []struct {
		Contender, Metric string
		MDD               *float64 `json:"mdd"`
		VsBaseline        *struct {
			Ratio float64
			CI    *[2]float64 `json:"ci"`
		} `json:"vs_baseline"`
	}
}

func main() {
	program := flag.String("cnibench", "bin/cnibench", "the program that runs and reports")
	before := flag.String("before", "", "an older program: each run is made by it, and then by the other")
	contenders := flag.String("contenders", "", "as of the demo")
	runs := flag.Int("runs", 1, "how often")
	busy := flag.Bool("busy", false, "every second run is beside a process that uses 30 % of a CPU for half of the time")
	keep := flag.String("keep", "", "the folder that gets the run directories; without it they are removed")
	flag.Parse()
	if err := all(bench{*program, *before, *contenders, *keep}, *runs, *busy); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// bench is what all runs have in common.
type bench struct{ program, before, contenders, keep string }

// all carries out the runs and prints a line for each figure of each, then the ratios.
func all(b bench, runs int, busy bool) error {
	ratios := map[string]*[2][]float64{}
	fmt.Println("| run | program | neighbour | rounds | seconds | measured | figure | smallest difference | interval | order |\n|---|---|---|---|---|---|---|---|---|---|")
	for run := range runs {
		beside := 0
		if busy {
			beside = run % 2
		}
		if b.before != "" {
			r, took, err := b.runOnce(b.before, fmt.Sprintf("run-%d-before", run+1), beside == 1)
			if err != nil {
				return err
			}
			r.print(run, "before", beside, took)
		}
		r, took, err := b.runOnce(b.program, fmt.Sprintf("run-%d", run+1), beside == 1)
		if err != nil {
			return err
		}
		r.print(run, "this", beside, took)
		for _, x := range r.Results {
			if x.VsBaseline == nil || !slices.Contains(figures, x.Metric) {
				continue
			}
			key := "| " + x.Metric + " | " + x.Contender + " |"
			if ratios[key] == nil {
				ratios[key] = new([2][]float64)
			}
			ratios[key][beside] = append(ratios[key][beside], x.VsBaseline.Ratio)
		}
	}
	if busy {
		compare(ratios)
	}
	return nil
}

// print prints a line for each figure of a run.
func (r *report) print(run int, program string, beside int, took time.Duration) {
	for _, metric := range figures {
		mdd, half := r.reach(metric)
		inOrder := "–"
		if metric == result.Goodput {
			inOrder = r.order()
		}
		fmt.Printf("| %d | %s | %s | %d | %.0f | %s | %s | %s | ±%s | %s |\n", run+1, program, []string{"none", "busy"}[beside],
			r.Run.Rounds, took.Seconds(), percent(r.Run.MeasuredShare), metric, percent(mdd), percent(half), inOrder)
	}
}

// compare prints each contender's median ratio without and with the neighbour.
func compare(ratios map[string]*[2][]float64) {
	fmt.Println("\n| figure | contender | alone | beside the neighbour | difference |\n|---|---|---|---|---|")
	for _, key := range slices.Sorted(maps.Keys(ratios)) {
		alone, beside := ratios[key][0], ratios[key][1]
		if len(alone) == 0 || len(beside) == 0 {
			fmt.Println(key, "– | – | – |")
			continue
		}
		a, b := stat.Median(alone), stat.Median(beside)
		fmt.Printf("%s %.3f (%.3f–%.3f) | %.3f (%.3f–%.3f) | %+.1f %% |\n", key, a, slices.Min(alone), slices.Max(alone), b, slices.Min(beside), slices.Max(beside), 100*(b/a-1))
	}
}

// runOnce has the program run the demo, and returns its report by the newer program.
func (b bench) runOnce(program, name string, busy bool) (*report, time.Duration, error) {
	dir := b.keep
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "reachbench-"); err != nil {
			return nil, 0, err
		}
		defer os.RemoveAll(dir)
	}
	out := filepath.Join(dir, name)
	if busy {
		defer selftest.Neighbour(1, 0.3, 10*time.Second)()
	}
	begin := time.Now()
	if _, err := output(program, "run", "--suite", "quick", "--arena", "lab", "--contenders", b.contenders, "--out", out); err != nil {
		return nil, 0, err
	}
	took := time.Since(begin)
	text, err := output(b.program, "report", out, "--format", "json")
	if err != nil {
		return nil, 0, err
	}
	var r report
	return &r, took, json.Unmarshal(text, &r)
}

// output is what a command prints.
func output(argv ...string) ([]byte, error) {
	var out bytes.Buffer
	p, err := host.Local{}.Start(context.Background(), host.Command{Argv: argv, Stdout: &out})
	if err == nil {
		err = p.Wait()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
	}
	return out.Bytes(), nil
}

// reach is the smallest difference and half the width of the ratio's interval of a
// typical contender, the median of all; -1 where no contender has one.
func (r *report) reach(metric string) (mdd, half float64) {
	var mdds, halves []float64
	for _, x := range r.Results {
		if x.Metric != metric || x.VsBaseline == nil {
			continue
		}
		if x.MDD != nil {
			mdds = append(mdds, *x.MDD)
		}
		if ci := x.VsBaseline.CI; ci != nil {
			halves = append(halves, stat.HalfWidth(ci[0], ci[1]))
		}
	}
	middle := func(list []float64) float64 {
		if len(list) == 0 {
			return -1
		}
		return stat.Median(list)
	}
	return middle(mdds), middle(halves)
}

func percent(share float64) string {
	if share < 0 {
		return "none"
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}

// order says whether the goodputs came out in the order that they must have.
func (r *report) order() string {
	ratios := map[string]float64{"host": 1}
	for _, x := range r.Results {
		if x.Metric == result.Goodput && x.VsBaseline != nil {
			ratios[x.Contender] = x.VsBaseline.Ratio
		}
	}
	var found []float64
	for _, id := range order {
		found = append(found, -ratios[id])
	}
	if slices.IsSorted(found) {
		return "as it must be"
	}
	return fmt.Sprint("wrong: ", ratios)
}
