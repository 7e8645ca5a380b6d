// Program slicebench finds how long a slice and its lead must be to agree with a long
// transfer. Contenders of the lab stand side by side; for each pair of lead and length
// they take slices in random order, for the same time of load, and the ratio of their
// goodput to the host's is compared with that of long slices. docs/accuracy.md has
// the result. Needs root, or an ordinary user who may make namespaces.
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

	"github.com/cnibench/cnibench/contenders"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/workload"
)

// names are the contenders, the baseline first.
var names = []string{"host", "flannel-vxlan", "macvlan"}

// setting is how slices are taken.
type setting struct{ lead, length time.Duration }

const ms = time.Millisecond

// long is the transfer that slices are held against.
var long = setting{500 * ms, 2000 * ms}

var settings = []setting{
	long,
	{50 * ms, 50 * ms}, {50 * ms, 100 * ms}, {50 * ms, 200 * ms}, {50 * ms, 500 * ms}, {50 * ms, 1000 * ms}, {50 * ms, 2000 * ms},
	{0, 100 * ms}, {10 * ms, 100 * ms}, {20 * ms, 100 * ms}, {100 * ms, 100 * ms}, {200 * ms, 100 * ms},
}

func main() {
	cnibench := flag.String("cnibench", "bin/cnibench", "the program that loads")
	rounds := flag.Int("rounds", 5, "in which every setting has its turn")
	each := flag.Duration("each", 2*time.Second, "of load on each contender for a setting and round, leads not counted")
	window := flag.String("window", "", "cap on a connection's window, e.g. 1MiB")
	flag.Parse()
	if !lab.Contained() {
		code, err := lab.Contain(context.Background(), os.Args[1:])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(code)
	}
	err := lab.Enter()
	if err == nil {
		err = run(context.Background(), *cnibench, *window, *rounds, *each)
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

func run(ctx context.Context, cnibench, window string, rounds int, each time.Duration) (err error) {
	all, err := contender.Load(contenders.FS)
	if err != nil {
		return err
	}
	a, err := lab.New(lab.Options{Nodes: 2, Underlay: lab.UnderlayAuto, MTU: 1500, Congestion: lab.CongestionAuto, CPUs: lab.DefaultPlacement(allCPUs())})
	if err != nil {
		return err
	}
	open := map[string]workload.Slicer{}
	w := workload.TCPBulk()
	w.Program = cnibench
	for _, name := range names {
		c := find(all, name)
		n, upErr := a.Up(ctx, c, a.Variant(c))
		if upErr != nil {
			return upErr
		}
		defer func() { err = errors.Join(err, n.Down(ctx)) }()
		path := arena.PathPod
		if a.HasPath(c, path) != nil {
			path = arena.PathHost
		}
		pair, pairErr := n.Pair(ctx, path)
		params, paramErr := workload.Complete(w.Info(), map[string]any{"window": window})
		if err := errors.Join(pairErr, paramErr); err != nil {
			return err
		}
		opened, openErr := w.Open(ctx, &workload.Session{Client: pair.Client, Server: pair.Server, Target: pair.Target, Ports: pair.Ports, Params: params, Raw: discarded{}})
		if openErr != nil {
			return openErr
		}
		open[name] = opened
		defer func() { // before the network goes down
			_, closeErr := opened.Close(nil)
			err = errors.Join(err, closeErr)
		}()
	}
	found := map[setting]map[string][]float64{} // by round: ratios, and the baseline's goodput
	for range rounds {
		order := slices.Clone(settings)
		rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, s := range order {
			goodput, err := cycles(ctx, open, s, max(2, int(each/s.length)))
			if err != nil {
				return err
			}
			if found[s] == nil {
				found[s] = map[string][]float64{}
			}
			base := goodput[names[0]]
			found[s][names[0]] = append(found[s][names[0]], stat.Median(base))
			for _, name := range names[1:] {
				logs := make([]float64, len(base))
				for i := range base {
					logs[i] = math.Log(goodput[name][i] / base[i])
				}
				found[s][name] = append(found[s][name], math.Exp(stat.Median(logs)))
			}
		}
	}
	print(found)
	return nil
}

func allCPUs() []int {
	var all []int
	for cpu := range runtime.NumCPU() {
		all = append(all, cpu)
	}
	return all
}

func find(all []*contender.Contender, id string) *contender.Contender {
	return all[slices.IndexFunc(all, func(c *contender.Contender) bool { return c.ID == id })]
}

// cycles takes n slices of each in random order, and returns the goodput of each.
func cycles(ctx context.Context, open map[string]workload.Slicer, s setting, n int) (map[string][]float64, error) {
	goodput := map[string][]float64{}
	for range n {
		for _, k := range rand.Perm(len(names)) {
			slice, err := open[names[k]].Slice(ctx, s.lead, s.length, nil, nil)
			if err != nil {
				return nil, err
			}
			goodput[names[k]] = append(goodput[names[k]], max(1, slice.Metrics[result.Goodput])) // of which logarithms are taken
		}
	}
	return goodput, nil
}

func print(found map[setting]map[string][]float64) {
	fmt.Printf("| lead | length | host, Gbit/s |")
	for _, name := range names[1:] {
		fmt.Printf(" %s to host | against long |", name)
	}
	fmt.Printf("\n|---|---|---|---|---|---|---|\n")
	for _, s := range settings {
		fmt.Printf("| %v | %v | %.1f |", s.lead, s.length, stat.Median(found[s][names[0]])/1e9)
		for _, name := range names[1:] {
			ratios := found[s][name]
			fmt.Printf(" %.3f (%.3f to %.3f) | %+.1f %% |", stat.Median(ratios), slices.Min(ratios), slices.Max(ratios),
				100*(stat.Median(ratios)/stat.Median(found[long][name])-1))
		}
		fmt.Println()
	}
}
