// Program slicebench measures what a run's noise is made of, and how long slices and their
// leads must be. Contenders of the lab stand side by side. In each cycle each takes one slice
// of every figure in every setting of lead and length, in random order. Some builds of the
// networks have some connections each, and these some cycles. For each setting it prints the
// standard deviations that slices, cycles, connections and builds add, and the ratio to the
// host beside that of the longest slices after the longest lead. docs/dev/measurement.md has the
// result. First it prints how a loop that only counts varies on each CPU: that noise is the
// machine's. Needs root, or an ordinary user who may make namespaces.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/procfs"

	"github.com/cnibench/cnibench/contenders"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/workload"
)

// names are the contenders, the baseline first: one with routes, one with a tunnel.
var names = []string{"host", "calico-noencap", "flannel-vxlan"}

// setting is how slices are taken.
type setting struct{ lead, length time.Duration }

const ms = time.Millisecond

// long is the setting that the others are held against.
var long = setting{100 * ms, 400 * ms}

var settings = []setting{
	long,
	{5 * ms, 25 * ms}, {10 * ms, 25 * ms}, {20 * ms, 25 * ms},
	{10 * ms, 50 * ms}, {20 * ms, 50 * ms},
	{10 * ms, 100 * ms}, {20 * ms, 100 * ms}, {50 * ms, 100 * ms},
	{20 * ms, 200 * ms},
}

// figures are what slices measure. CPU is of the whole machine, by its idle time.
var figures = []string{result.Goodput, result.CPUPerGbit, "network_time_p50"}

func main() {
	cnibench := flag.String("cnibench", "bin/cnibench", "the program that loads")
	var d design
	flag.IntVar(&d.builds, "builds", 3, "of the networks")
	flag.IntVar(&d.connections, "connections", 2, "one after the other, of each load in each build")
	flag.IntVar(&d.cycles, "cycles", 5, "on each connection")
	flag.Parse()
	if !lab.Contained() {
		printSpeed()
		code, err := lab.Contain(context.Background(), os.Args[1:])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(code)
	}
	err := lab.Enter()
	if err == nil {
		err = run(context.Background(), *cnibench, d)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "slicebench:", err)
		os.Exit(1)
	}
}

// discarded is a raw folder that keeps nothing.
type discarded struct{ io.Writer }

func (discarded) Create(string) (io.WriteCloser, error) { return discarded{io.Discard}, nil }
func (discarded) Close() error                          { return nil }

// design says how often all settings are measured.
type design struct{ builds, connections, cycles int }

// series identifies the values of a contender's figure in a setting.
type series struct {
	figure string
	setting
	contender string
}

// measured holds logarithms of values, by build, connection and cycle.
type measured map[series][][][]float64

func run(ctx context.Context, cnibench string, d design) error {
	all, err := contender.Load(contenders.FS)
	if err != nil {
		return err
	}
	a, err := lab.New(lab.Options{Nodes: 2, Underlay: lab.UnderlayAuto, MTU: 1500, Congestion: lab.CongestionAuto, CPUs: lab.DefaultPlacement(allCPUs())})
	if err != nil {
		return err
	}
	found := measured{}
	for range d.builds {
		if err := build(ctx, a, all, cnibench, d, found); err != nil {
			return err
		}
	}
	print(found)
	return nil
}

// build brings the contenders up, and measures over some connections.
func build(ctx context.Context, a arena.Arena, all []*contender.Contender, cnibench string, d design, found measured) (err error) {
	pairs := map[string]arena.Pair{}
	for _, name := range names {
		c := all[slices.IndexFunc(all, func(c *contender.Contender) bool { return c.ID == name })]
		n, upErr := a.Up(ctx, c, a.Variant(c))
		if upErr != nil {
			return upErr
		}
		defer func() { err = errors.Join(err, n.Down(ctx)) }()
		path := arena.PathPod
		if a.HasPath(c, path) != nil {
			path = arena.PathHost
		}
		if pairs[name], err = n.Pair(ctx, path); err != nil {
			return err
		}
	}
	for s := range allSeries() {
		found[s] = append(found[s], nil)
	}
	for range d.connections {
		if err := connection(ctx, pairs, cnibench, d.cycles, found); err != nil {
			return err
		}
	}
	return nil
}

// allSeries are all series.
func allSeries() map[series]bool {
	out := map[series]bool{}
	for _, figure := range figures {
		for _, s := range settings {
			for _, name := range names {
				out[series{figure, s, name}] = true
			}
		}
	}
	return out
}

// load is an open load of a contender.
type load struct {
	contender string
	workload.Slicer
}

// connection opens a bulk and a request load to each contender, and takes cycles.
func connection(ctx context.Context, pairs map[string]arena.Pair, cnibench string, cycles int, found measured) (err error) {
	bulk, http := workload.TCPBulk(), workload.HTTPRate{Program: cnibench}
	bulk.Program = cnibench
	var loads []load
	for _, name := range names {
		for _, open := range []struct {
			workload.Sliceable
			info  workload.Info
			given map[string]any
		}{{bulk, bulk.Info(), nil}, {http, http.Info(), map[string]any{"rate": 5003.0, "connections": 32, "response": "350B"}}} {
			params, err := workload.Complete(open.info, open.given)
			if err != nil {
				return err
			}
			p := pairs[name]
			slicer, err := open.Open(ctx, &workload.Session{Client: p.Client, Server: p.Server, Target: p.Target, Ports: p.Ports, Params: params, Raw: discarded{}})
			if err != nil {
				return err
			}
			loads = append(loads, load{name, slicer})
		}
	}
	defer func() { // before the networks go down
		for _, l := range loads {
			_, closeErr := l.Close(nil)
			err = errors.Join(err, closeErr)
		}
	}()
	for s := range allSeries() {
		b := len(found[s]) - 1
		found[s][b] = append(found[s][b], nil)
	}
	for range cycles {
		type turn struct {
			load
			setting
		}
		var turns []turn
		for _, l := range loads {
			for _, s := range settings {
				turns = append(turns, turn{l, s})
			}
		}
		rand.Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
		for _, t := range turns {
			var used float64
			slice, err := t.Slice(ctx, t.lead, t.length, func() { used = -readBusyTime() }, func() { used += readBusyTime() })
			if err != nil {
				return err
			}
			if goodput := slice.Metrics[result.Goodput]; goodput > 0 {
				slice.Metrics[result.CPUPerGbit] = used / (goodput * slice.Elapsed.Seconds())
			}
			for _, figure := range figures {
				if v, has := slice.Metrics[figure]; has {
					s := series{figure, t.setting, t.contender}
					b := len(found[s]) - 1
					k := len(found[s][b]) - 1
					found[s][b][k] = append(found[s][b][k], math.Log(max(v, 1e-15)))
				}
			}
		}
	}
	return nil
}

// readBusyTime returns the CPU time of the machine so far, in CPU-seconds: elapsed less idle time.
func readBusyTime() float64 {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0
	}
	at := time.Now()
	stat, err := fs.Stat()
	if err != nil {
		return 0
	}
	c := stat.CPUTotal
	return float64(len(stat.CPU))*float64(at.UnixNano())/1e9 - c.Idle - c.Iowait - c.Steal
}

func allCPUs() []int {
	var all []int
	for cpu := range runtime.NumCPU() {
		all = append(all, cpu)
	}
	return all
}

// components are standard deviations of logarithms.
type components struct{ slice, cycle, connection, build float64 }

// split returns the components of a contender's series, of which others are the series of all
// contenders. What a cycle does to all is the cycle's; of what is left, the means of
// connections and builds differ by more than their slices explain, or add nothing.
func split(own [][][]float64, others [][][][]float64) components {
	var within, common, connection, build, buildMeans, counts []float64
	for b := range own {
		var means []float64
		for k := range own[b] {
			var left, cycles []float64
			for c := range own[b][k] {
				sum := 0.0
				for _, o := range others {
					sum += o[b][k][c]
				}
				cycles = append(cycles, sum/float64(len(others)))
				left = append(left, own[b][k][c]-cycles[c])
			}
			within, common = append(within, variance(left)), append(common, variance(cycles))
			means, counts = append(means, stat.Mean(left)), append(counts, float64(len(left)))
		}
		connection, buildMeans = append(connection, variance(means)), append(buildMeans, stat.Mean(means))
	}
	build = append(build, variance(buildMeans))
	k, n := float64(len(others)), stat.Mean(counts)
	slice := stat.Mean(within) * k / (k - 1) // a contender is a part of what it is compared with
	excess := func(v, by float64) float64 {
		if v -= by; !(v > 0) {
			return 0
		}
		return math.Sqrt(v)
	}
	between := stat.Mean(connection)
	if math.IsNaN(between) {
		between = stat.Mean(within) / n
	}
	return components{
		math.Sqrt(slice), excess(stat.Mean(common), slice/k),
		excess(between, stat.Mean(within)/n), excess(build[0], between/max(1, float64(len(own[0])))),
	}
}

// variance is NaN for fewer than two values.
func variance(values []float64) float64 {
	mean, sum := stat.Mean(values), 0.0
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return sum / float64(len(values)-1)
}

func flat(values [][][]float64) []float64 { return slices.Concat(slices.Concat(values...)...) }

func print(found measured) {
	fmt.Println("| figure | contender | lead | length | slice | cycle | connection | build | to host | to long slices |\n|---|---|---|---|---|---|---|---|---|---|")
	for _, figure := range figures {
		for _, name := range names {
			toHost := func(s setting) (logs []float64) {
				base := flat(found[series{figure, s, names[0]}])
				for i, v := range flat(found[series{figure, s, name}]) {
					logs = append(logs, v-base[i])
				}
				return logs
			}
			reference := toHost(long)
			for _, s := range settings {
				var others [][][][]float64
				for _, other := range names {
					others = append(others, found[series{figure, s, other}])
				}
				c, ratio := split(found[series{figure, s, name}], others), toHost(s)
				apart := make([]float64, len(ratio))
				for i := range ratio {
					apart[i] = ratio[i] - reference[i]
				}
				error95 := 1.96 * math.Sqrt(variance(apart)/float64(len(apart)))
				fmt.Printf("| %s | %s | %v | %v | %.1f %% | %.1f %% | %.1f %% | %.1f %% | %.3f | %+.1f ± %.1f %% |\n", figure, name, s.lead, s.length,
					100*c.slice, 100*c.cycle, 100*c.connection, 100*c.build, math.Exp(stat.Mean(ratio)), 100*stat.Mean(apart), 100*error95)
			}
		}
	}
}
