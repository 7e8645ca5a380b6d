package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/mesh"
	quantity "github.com/cnibench/cnibench/internal/unit"
)

// maxLate is the share of late requests from which a prober's figures blame nobody.
const maxLate = 0.05

var paths = []string{mesh.Host, mesh.Pod}

// light measures round trips, losses and packet sizes.
func (m *meter) light(ctx context.Context) error {
	type job struct {
		path string
		node int
		to   []int
	}
	var jobs []job
	for node, to := range m.plan.Light() {
		for _, path := range paths {
			jobs = append(jobs, job{path, node, to})
		}
	}
	var done atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, m.plan.Senders))
	for _, j := range jobs {
		group.Go(func() error {
			err := m.probe(ctx, j.path, j.node, j.to)
			m.Progress(0.05+0.35*float64(done.Add(1))/float64(len(jobs)), "round trips and packet sizes")
			return err
		})
	}
	return group.Wait()
}

// attempts is how often one thing is measured when agents end meanwhile.
const attempts = 3

// steady measures something between nodes. If it fails, or if what it gave is suspicious, and an
// agent is found to have ended, it is measured again once the agent is back. A node that does
// not come back is lost. ok is false if there is no figure.
func (m *meter) steady(ctx context.Context, path string, nodes []int, try func() (suspicious bool, err error)) (ok bool, err error) {
	for range attempts {
		for _, n := range nodes {
			if !m.has(path, n) {
				return false, nil
			}
		}
		suspicious, failed := try()
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if failed == nil && !suspicious {
			return true, nil
		}
		repeat := false
		for _, n := range nodes {
			again, err := m.alive(ctx, path, n)
			if errors.Is(err, errGone) {
				if err := m.dropNode(n, err); err != nil {
					return false, err
				}
				return false, nil
			}
			if err != nil {
				return false, err
			}
			repeat = repeat || again
		}
		if failed == nil && !repeat {
			return true, nil // all agents are well: the network did it
		}
		if failed != nil && !repeat {
			return false, failed
		}
	}
	return false, nil
}

// probe measures round trips, losses and packet sizes from one node to others.
func (m *meter) probe(ctx context.Context, path string, node int, to []int) error {
	var left []int
	for _, n := range to {
		if !m.known(unit{mesh.Pair{From: node, To: n}, path, 0, false}) && m.has(path, n) {
			left = append(left, n)
		}
	}
	most := maxTargets
	if m.plan.Round != nil {
		most = 1 // its probes take long
	}
	for step := range slices.Chunk(left, most) {
		var figures []mesh.Figure
		_, err := m.steady(ctx, path, []int{node}, func() (bool, error) {
			var err error
			figures, err = m.probeOnce(ctx, path, node, step)
			return false, err
		})
		if err != nil {
			return err
		}
		// A node that does not answer at all may have ended.
		var good []mesh.Figure
		for _, f := range figures {
			if f.Values[mesh.Loss] < 1 {
				good = append(good, f)
				continue
			}
			ok, err := m.steady(ctx, path, []int{f.From, f.To}, func() (bool, error) {
				again, err := m.probeOnce(ctx, path, node, []int{f.To})
				if err == nil {
					f = again[0]
				}
				return f.Values[mesh.Loss] == 1, err
			})
			if err != nil {
				return err
			}
			if ok {
				good = append(good, f)
			}
		}
		if err := m.keep(good...); err != nil {
			return err
		}
	}
	return nil
}

const maxTargets = 256 // of one request to an agent

func (m *meter) probeOnce(ctx context.Context, path string, node int, to []int) ([]mesh.Figure, error) {
	from := m.use(path, node)
	var figures []mesh.Figure
	var targets []netip.AddrPort
	for _, n := range to {
		t := m.use(path, n)
		figures = append(figures, mesh.Figure{Pair: mesh.Pair{From: node, To: n}, Path: path, Values: map[mesh.Metric]float64{}})
		targets = append(targets, netip.AddrPortFrom(t.addr, t.ports.UDP))
	}
	trips, err := m.roundTrips(ctx, from, targets, m.plan.Probes, m.plan.Rate)
	if err != nil {
		return nil, err
	}
	for i := range figures {
		f, t := &figures[i], trips[i]
		f.Probes = int(cmp.Or(t.Planned, int64(m.plan.Probes)))
		f.Late = t.Late > maxLate
		f.Values[mesh.Loss] = t.Loss
		if t.Error != "" {
			f.Values[mesh.Loss] = 1
			continue
		}
		if t.P50 > 0 {
			f.Values[mesh.RTT] = t.P50
		}
		if f.Values[mesh.MTU], err = m.packetSize(ctx, from, m.use(path, f.To)); err != nil {
			return nil, err
		}
	}
	return figures, nil
}

// roundTrips measures round trips from one end to targets, with so many probes a second to each.
func (m *meter) roundTrips(ctx context.Context, from serving, targets []netip.AddrPort, probes int, rate float64) ([]agent.Trip, error) {
	return from.RoundTrips(ctx, agent.Trips{
		Targets: targets, Exchange: "udp", Rate: rate, Duration: time.Duration(float64(probes) / rate * float64(time.Second)),
		AtOnce: max(1, m.plan.AtOnce),
	})
}

// packetSizes are tried from the MTU of both ends downwards. The answer is one of them or the
// MTU: enough to see that two places differ; `check mtu` finds the size to the byte.
var packetSizes = []int{8950, 1500, 1450, 1430, 1400, 1350, 1300, 1280, 1200, 1000, 576, 256}

// packetSize returns the largest packet, bytes, that crosses from one end to another in one
// piece; 0 if none does.
func (m *meter) packetSize(ctx context.Context, from, to serving) (float64, error) {
	top := min(from.mtu, to.mtu)
	for _, size := range slices.Concat([]int{top}, packetSizes) {
		if size > top {
			continue
		}
		answer, err := from.ProbeSize(ctx, agent.SizeProbe{Target: to.echo, Size: size, Tries: 3})
		if err != nil {
			return 0, err
		}
		if answer.Kind == agent.OK {
			return float64(size), nil
		}
	}
	return 0, nil
}

// bursts carries out the tournament on both networks: every slot on the nodes' network and on
// the pods' one after the other, in random order.
func (m *meter) bursts(ctx context.Context) error {
	design, ramp := m.plan.Bursts(), mesh.NewRamp(m.plan.Limits.AtOnce)
	done := 0
	for _, waiting := range design.Rounds {
		for len(waiting) > 0 {
			var slot []mesh.Pair
			slot, waiting = ramp.Slot(m.plan.Nodes, waiting, m.plan.Limits)
			var strain []mesh.Strain
			for _, pairs := range [][]mesh.Pair{slot, mesh.Backs(slot)} {
				for _, i := range rand.Perm(len(paths)) {
					more, err := m.slot(ctx, paths[i], pairs)
					if err != nil {
						return err
					}
					strain = append(strain, more...)
				}
			}
			ramp.Saw(strain)
			done += len(slot)
			m.Progress(0.4+0.3*float64(done)/float64(design.Pairs()), "bursts")
		}
	}
	if held := ramp.Held(); held > 0 {
		return m.keep(mesh.Figure{Path: mesh.Host, Held: held})
	}
	return nil
}

// slot has the pairs send at the same time.
func (m *meter) slot(ctx context.Context, path string, pairs []mesh.Pair) ([]mesh.Strain, error) {
	pairs = slices.DeleteFunc(slices.Clone(pairs), func(p mesh.Pair) bool {
		return m.known(unit{p, path, 0, true}) || !m.has(path, p.From) || !m.has(path, p.To)
	})
	if len(pairs) == 0 {
		return nil, nil
	}
	figures, strain := make([]mesh.Figure, len(pairs)), make([]mesh.Strain, len(pairs))
	measured := make([]bool, len(pairs))
	group, together := errgroup.WithContext(ctx)
	for i, p := range pairs {
		group.Go(func() (err error) {
			before := m.countDrops(together, path, p.To)
			var got agent.Bursted
			measured[i], err = m.steady(together, path, []int{p.From, p.To}, func() (bool, error) {
				got = m.burst(together, path, p)
				return got.Goodput <= 0, nil
			})
			// A burst of which nothing arrived has no figure: losses name such a pair.
			measured[i] = measured[i] && got.Goodput > 0
			figures[i] = mesh.Figure{Pair: p, Path: path, Values: map[mesh.Metric]float64{mesh.Goodput: got.Goodput}}
			strain[i] = mesh.Strain{Again: float64(got.Retransmits) / float64(max(1, got.Segments)), Dropped: m.countDrops(together, path, p.To) > before}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var kept []mesh.Figure
	for i := range pairs {
		if measured[i] {
			kept = append(kept, figures[i])
		}
	}
	if err := m.keep(kept...); err != nil {
		return nil, err
	}
	return strain, sleep(ctx, m.plan.Limits.Gap)
}

// countDrops returns the packets that the node dropped so far because a CPU's backlog was full.
func (m *meter) countDrops(ctx context.Context, path string, node int) uint64 {
	if !m.has(path, node) {
		return 0
	}
	hello, _ := m.use(path, node).Hello(ctx, netip.Addr{}) // an agent that ended drops nothing
	return hello.SoftnetDropped
}

// leadIn is the begin of a burst that does not count.
const leadIn = 50 * time.Millisecond

// burst sends one burst. The goodput is 0 if nothing arrived.
func (m *meter) burst(ctx context.Context, path string, p mesh.Pair) agent.Bursted {
	from, to := m.use(path, p.From), m.use(path, p.To)
	got, err := from.SendBurst(ctx, agent.Burst{
		Target: netip.AddrPortFrom(to.addr, to.ports.Sink), Protocol: "tcp", Rate: quantity.BitRate(m.plan.Limits.Rate), LeadIn: leadIn, Duration: m.plan.Limits.Slice,
	})
	if err != nil {
		return agent.Bursted{}
	}
	return got
}

// trials carries out the second pass: cycle by cycle, a trial's test and controls in random order.
func (m *meter) trials(ctx context.Context) error {
	suspects, trials := m.plan.Suspects(m.figures)
	m.Progress(0.7, fmt.Sprintf("%d suspects again", len(suspects)))
	order := rand.Perm(len(trials))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(trials[a].Cycle, trials[b].Cycle) })
	for done, i := range order {
		t := trials[i]
		pairs := append([]mesh.Pair{t.Test}, t.Controls...)
		for _, p := range rand.Perm(len(pairs)) {
			if m.known(unit{pairs[p], t.Path, i + 1, false}) {
				continue
			}
			var f mesh.Figure
			ok, err := m.steady(ctx, t.Path, []int{pairs[p].From, pairs[p].To}, func() (suspicious bool, err error) {
				f, suspicious, err = m.measurePair(ctx, t, pairs[p])
				return suspicious, err
			})
			if err != nil {
				return err
			}
			if f.Trial = i + 1; ok {
				if err := m.keep(f); err != nil {
					return err
				}
			}
		}
		m.Progress(0.7+0.3*float64(done+1)/float64(len(order)), "suspects again")
	}
	return nil
}

// measurePair measures one pair by the trial's metric. It is suspicious if nothing arrives.
func (m *meter) measurePair(ctx context.Context, t mesh.Trial, p mesh.Pair) (f mesh.Figure, suspicious bool, err error) {
	f = mesh.Figure{Pair: p, Path: t.Path, Values: map[mesh.Metric]float64{}}
	from, to := m.use(t.Path, p.From), m.use(t.Path, p.To)
	switch t.Metric {
	case mesh.Goodput:
		v := m.burst(ctx, t.Path, p).Goodput
		f.Values[mesh.Goodput] = max(v, 1) // 1 bit/s: nothing arrived, and its logarithm is a number
		return f, v <= 0, nil
	case mesh.MTU:
		v, err := m.packetSize(ctx, from, to)
		f.Values[mesh.MTU] = max(v, 1)
		return f, v <= 0, err
	}
	probes, rate := m.plan.Again()
	trips, err := m.roundTrips(ctx, from, []netip.AddrPort{netip.AddrPortFrom(to.addr, to.ports.UDP)}, probes, rate)
	if err != nil {
		return f, false, err
	}
	trip := trips[0]
	f.Probes, f.Late = int(cmp.Or(trip.Planned, int64(probes))), trip.Late > maxLate
	f.Values[mesh.Loss] = trip.Loss
	if trip.Error != "" {
		f.Values[mesh.Loss] = 1
	}
	f.Values[mesh.RTT] = cmp.Or(max(trip.P50, 0), 1) // a second: no answer in time
	return f, f.Values[mesh.Loss] == 1, nil
}
