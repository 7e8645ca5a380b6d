// Program reachbench measures how small a difference `make demo` shows on this machine,
// left alone and beside a busy neighbour: it runs the demo's contenders some times, with
// -busy while a process uses 30 % of a CPU for half of the time, and prints for each
// figure the smallest difference that would have shown (mdd) and how far the intervals
// of the ratios reach, of a typical contender, and whether the order that the kernel
// dictates came out. docs/accuracy.md has the result. Needs a quiet machine otherwise.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
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
var figures = []string{result.Goodput, result.NetworkTimeP50, result.NetworkTimeP99, result.CPUPerGbit}

// report is what is read of `cnibench report --format json`.
type report struct {
	Run     struct{ Rounds int }
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
	program := flag.String("cnibench", "bin/cnibench", "the program that runs")
	contenders := flag.String("contenders", "", "as of the demo")
	runs := flag.Int("runs", 1, "how often")
	busy := flag.Bool("busy", false, "beside a process that uses 30 % of a CPU for half of the time")
	flag.Parse()
	if err := all(*program, *contenders, *runs, *busy); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func all(program, contenders string, runs int, busy bool) error {
	if busy {
		defer selftest.Neighbour(1, 0.3, 10*time.Second)()
	}
	fmt.Println("| run | rounds | seconds | figure | smallest difference | interval | order |\n|---|---|---|---|---|---|---|")
	for run := range runs {
		r, took, err := once(program, contenders)
		if err != nil {
			return err
		}
		for _, metric := range figures {
			mdd, half := r.reach(metric)
			inOrder := "–"
			if metric == result.Goodput {
				inOrder = r.order()
			}
			fmt.Printf("| %d | %d | %.0f | %s | %s | ±%s | %s |\n", run+1, r.Run.Rounds, took.Seconds(), metric, percent(mdd), percent(half), inOrder)
		}
	}
	return nil
}

// once runs the demo and returns its report.
func once(program, contenders string) (*report, time.Duration, error) {
	dir, err := os.MkdirTemp("", "reachbench-")
	if err != nil {
		return nil, 0, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "run")
	begin := time.Now()
	if _, err := output(program, "run", "--suite", "quick", "--arena", "lab", "--contenders", contenders, "--max-time", "4m", "--out", out); err != nil {
		return nil, 0, err
	}
	took := time.Since(begin)
	text, err := output(program, "report", out, "--format", "json")
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
