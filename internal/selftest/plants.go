// Package selftest proves the instrument on the machine at hand. It plants known faults into
// copies of the baseline (a link with a rate cap, a link that loses packets, a slow path, a
// wrong MTU, no fault at all) and judges whether a run found them. It does not run anything
// itself. Next: judge.go.
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

// copied is a copy of the baseline, with a fault or without one.
type copied struct {
	id, summary string
	steps       []string // the steps that it takes
	fault       plant.Fault
	pods        []int // the pods that have the fault
}

// The server of stallStep stalls in a way that gives each slice the same share of a stall.
const (
	stall      = 10 * time.Millisecond
	stallEvery = 50 * time.Millisecond
)

// twin is the name of the copy without a fault.
const twin = "twin"

// copies lists all copies of the self-test.
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

// Conditions describes where a self-test runs.
type Conditions struct {
	Baseline string // the contender that is copied, and with which each copy is compared
	MTU      int    // of the baseline, bytes; 0 if unknown
	// NoFaults is the reason why no fault can be planted, and NoNeighbour the reason why nobody
	// watches other load on the CPUs. Both are "" if there is no such reason.
	NoFaults, NoNeighbour string
	// NoDiagnosis is the reason why no fault is planted for diagnose; "" if there is none.
	NoDiagnosis string
	// Emulated is true if the CPU is emulated. Loads are then smaller.
	Emulated bool
	// LongTurns is true if handing over a turn takes tenths of a second, as on an emulated CPU
	// and in a cluster.
	LongTurns bool
}

// loads returns the rate of the capped link and the rate of the datagrams.
func (b Conditions) loads() (capped, datagrams unit.BitRate) {
	if b.Emulated {
		return 100e6, 20e6
	}
	return 1e9, 200e6
}

// Window returns how long each step takes in a round: five or six slices of the arena.
func (b Conditions) Window() time.Duration {
	if b.LongTurns {
		return time.Second
	}
	return 300 * time.Millisecond
}

// copies returns the copies that can be made under the conditions.
func (b Conditions) copies() []copied {
	return slices.DeleteFunc(copies(), func(c copied) bool { return c.fault != "" && b.NoFaults != "" })
}

// Contenders returns the copies of the baseline, for the run's catalogue.
func (b Conditions) Contenders(baseline *contender.Contender) []*contender.Contender {
	var list []*contender.Contender
	for _, p := range b.copies() {
		c := *baseline
		c.ID, c.Summary = p.id, "self-test: "+p.summary
		list = append(list, &c)
	}
	return list
}

// Steps returns the steps of the run.
func (b Conditions) Steps() []result.Step {
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

// Gaps returns the steps that contenders leave out, because nothing is planted for them.
func (b Conditions) Gaps() []result.Gap {
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

// Planted is an arena in which the copies come up with the faults that the conditions allow.
type Planted struct {
	arena.Arena
	Conditions Conditions
	Of         *contender.Contender // the original; nil: the arena knows the copies themselves
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
	p, is := copyOf(c)
	if is && a.Of != nil {
		c = a.Of
	}
	net, err := a.Arena.Up(ctx, c, variant)
	if err != nil {
		return nil, err
	}
	for _, i := range p.pods {
		if err := a.plant(ctx, net.Pods()[i], p.fault); err != nil {
			return nil, errors.Join(fmt.Errorf("self-test: plant %s: %w", p.id, err), net.Down(context.WithoutCancel(ctx)))
		}
	}
	return net, nil
}

// plant starts this program in the pod to plant the fault.
func (a Planted) plant(ctx context.Context, pod arena.Endpoint, fault plant.Fault) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	rate, _ := a.Conditions.loads()
	_, err = host.Output(ctx, pod, host.Command{Argv: []string{self, "agent", "plant", string(fault), pod.Addr().String(), fmt.Sprintf("--rate=%.0f", float64(rate))}, OffMeasuredCPUs: true})
	return err
}
