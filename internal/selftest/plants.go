// Package selftest proves the instrument on the machine at hand: it plants what is
// known into copies of the baseline (a link that is capped, one that loses packets,
// a slow path, a wrong MTU, nothing at all) and judges whether a run found it. It
// makes no run itself. Next: judge.go.
package selftest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/selftest/plant"
	"github.com/cnibench/cnibench/internal/unit"
)

// The steps of the run.
const (
	bulkStep     = "bulk"
	datagramStep = "datagrams"
	requestStep  = "requests"
	delayStep    = "delays"
	stallStep    = "stalls"
)

// copied is a copy of the baseline with something done to it, or nothing.
type copied struct {
	id, summary string
	steps       []string // that it takes
	fault       plant.Fault
	pods        []int // that have the fault
}

// The server of stallStep stalls so that each slice has the same share of a stall.
const (
	stall      = 10 * time.Millisecond
	stallEvery = 50 * time.Millisecond
)

// twin is the copy without a fault.
const twin = "twin"

// copies are those of the self-test.
func copies() []copied {
	return []copied{
		{twin, "the same network a second time", []string{bulkStep, requestStep}, "", nil},
		{string(plant.Capped), "a link that is capped", []string{bulkStep}, plant.Capped, []int{0}},
		{string(plant.Lossy), fmt.Sprintf("%.0f %% of the datagrams are dropped", 100*plant.Loss), []string{datagramStep}, plant.Lossy, []int{1}},
		{string(plant.Slow), fmt.Sprintf("%d rules that every packet passes", plant.Rules), []string{bulkStep, requestStep}, plant.Slow, []int{0, 1}},
		{string(plant.Delayed), fmt.Sprintf("a link that holds the end of %d bytes back", plant.DelayedSize), []string{delayStep}, plant.Delayed, []int{1}},
		{string(plant.Narrow), fmt.Sprintf("a pod whose link takes %d bytes while the other one's takes more", plant.NarrowMTU), nil, plant.Narrow, []int{1}},
	}
}

// Bed is where a self-test runs.
type Bed struct {
	Baseline string // the contender that is copied, and beside which each copy is measured
	MTU      int    // of the baseline, bytes; 0: not known
	// NoFaults is why no fault can be planted, and NoNeighbour why nobody watches what
	// else the CPUs do; empty: they can.
	NoFaults, NoNeighbour string
	// Emulated says that an emulated CPU does all the work, which takes smaller loads.
	Emulated bool
	// LongTurns says that handing on a turn takes tenths of a second, as on an emulated CPU
	// and in a cluster.
	LongTurns bool
}

// loads are the rate of the capped link and that of the datagrams.
func (b Bed) loads() (capped, datagrams unit.BitRate) {
	if b.Emulated {
		return 100e6, 20e6
	}
	return 1e9, 200e6
}

// Window is how long each step takes in a round, in five or six slices of the arena.
func (b Bed) Window() time.Duration {
	if b.LongTurns {
		return time.Second
	}
	return 300 * time.Millisecond
}

// copies are those that can be made on the bed.
func (b Bed) copies() []copied {
	return slices.DeleteFunc(copies(), func(c copied) bool { return c.fault != "" && b.NoFaults != "" })
}

// Contenders are the copies of the baseline, for the run's catalogue.
func (b Bed) Contenders(baseline *contender.Contender) []*contender.Contender {
	var list []*contender.Contender
	for _, p := range b.copies() {
		c := *baseline
		c.ID, c.Summary = p.id, "self-test: "+p.summary
		list = append(list, &c)
	}
	return list
}

// Steps are those of the run.
func (b Bed) Steps() []result.Step {
	_, datagrams := b.loads()
	return []result.Step{
		{ID: bulkStep, Summary: "TCP, 1 stream", Workload: "tcp_bulk", Path: arena.PathPod},
		{ID: datagramStep, Summary: fmt.Sprintf("UDP, 1 stream at %v", datagrams), Workload: "udp_bulk", Path: arena.PathPod, Params: map[string]any{"bandwidth": fmt.Sprintf("%.0fM", float64(datagrams)/1e6)}},
		{ID: requestStep, Summary: "TCP requests and responses, one at a time", Workload: "tcp_rr", Path: arena.PathPod, Params: map[string]any{"connections": 1}},
		{ID: delayStep, Summary: fmt.Sprintf("TCP responses of %d bytes, 101 a second", plant.DelayedSize), Workload: "tcp_rr", Path: arena.PathPod,
			Params: map[string]any{"connections": 1, "rate": 101.0, "response": fmt.Sprintf("%dB", plant.DelayedSize)}},
		{ID: stallStep, Summary: fmt.Sprintf("HTTP from a server that holds its responses for %v of each %v", stall, stallEvery), Workload: "http_rate", Path: arena.PathPod,
			Params: map[string]any{"connections": 32, "rate": 2003.0, "server": "cnibench", "stall": stall.String(), "every": stallEvery.String()}},
	}
}

// Gaps are the steps that contenders don't take, because nothing is planted for them.
func (b Bed) Gaps() []result.Gap {
	var gaps []result.Gap
	for _, p := range b.copies() {
		for _, step := range b.Steps() {
			if !slices.Contains(p.steps, step.ID) {
				gaps = append(gaps, result.Gap{Contender: p.id, Step: step.ID})
			}
		}
	}
	return gaps
}

// Planted is an arena in which the copies come up with what is planted in them.
type Planted struct {
	arena.As
	Bed Bed
}

// Plant returns the arena with what the bed plants. of is what the arena knows the copies
// as; nil: each is a contender of its own.
func Plant(a arena.Arena, bed Bed, of *contender.Contender) Planted {
	known := func(c *contender.Contender) *contender.Contender {
		if _, ok := copyOf(c); ok && of != nil {
			return of
		}
		return c
	}
	return Planted{As: arena.As{Arena: a, Known: known}, Bed: bed}
}

func copyOf(c *contender.Contender) (copied, bool) {
	list := copies()
	i := slices.IndexFunc(list, func(p copied) bool { return p.id == c.ID })
	if i < 0 {
		return copied{}, false
	}
	return list[i], true
}

// Up implements arena.Arena.
func (a Planted) Up(ctx context.Context, c *contender.Contender, variant string) (arena.Network, error) {
	net, err := a.As.Up(ctx, c, variant)
	if err != nil {
		return nil, err
	}
	p, _ := copyOf(c)
	for _, i := range p.pods {
		if err := a.plant(ctx, net.Pods()[i], p.fault); err != nil {
			return nil, errors.Join(fmt.Errorf("self-test: plant %s: %w", p.id, err), net.Down(context.WithoutCancel(ctx)))
		}
	}
	return net, nil
}

// plant has this program plant the fault in the pod.
func (a Planted) plant(ctx context.Context, pod arena.Endpoint, fault plant.Fault) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	rate, _ := a.Bed.loads()
	_, err = host.Output(ctx, pod, host.Command{Argv: []string{self, "agent", "plant", string(fault), pod.Addr().String(), fmt.Sprintf("--rate=%.0f", float64(rate))}, Aside: true})
	return err
}
