// Package measure carries out what package mesh plans on a network that is up: it starts an
// agent on every node and in a pod on every node, has them measure round trips, losses, packet
// sizes and bursts, and hands the figures to mesh. It sees the network only through arena
// endpoints and agents, so that it serves every arena, and decides nothing about blame. Next: light.go and
// bursts.go.
package measure

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/mesh"
	"github.com/cnibench/cnibench/internal/unit"
)

// Options bound a mesh.
type Options struct {
	Matchings int // of the tournament of bursts; 0: every two nodes
	Limits    mesh.Limits
	// Probes are the datagrams of one direction: 299 show a loss of 1 % with a chance of 95 %.
	Probes int
	Rate   float64 // of probes to one target, 1/s
	// Senders is how many nodes probe at the same time. Nodes that share CPUs probe one by one.
	Senders int
	// Partners is to how many others a node probes; 0: all.
	Partners int
	Seed     uint64
	Progress func(done float64, text string) // done from 0 to 1
}

// Default are the options of a cluster whose nodes are machines of their own.
var Default = Options{Matchings: 4, Limits: mesh.DefaultLimits, Probes: 300, Rate: 1000, Senders: 10}

// Network is a network whose nodes and pods can be asked.
type Network struct {
	Nodes []mesh.Node
	Host  []arena.Endpoint // by node; nil where the nodes' network may not be used
	Pod   []arena.Endpoint // by node; nil where there is no pod
	// Agent returns the agent at an endpoint, started when first asked for.
	Agent func(ctx context.Context, e arena.Endpoint) (*agent.Client, error)
}

// Add adds a node.
func (n *Network) Add(name, zone string, labels map[string]string, host, pod arena.Endpoint) {
	n.Nodes = append(n.Nodes, mesh.Node{Name: name, Zone: zone, Labels: labels})
	n.Host, n.Pod = append(n.Host, host), append(n.Pod, pod)
}

// Of returns the network's nodes, each with the first pod on it.
func Of(net arena.Network, start func(ctx context.Context, e arena.Endpoint) (*agent.Client, error)) Network {
	var one sync.Mutex // start may keep a list of agents
	out := Network{Agent: func(ctx context.Context, e arena.Endpoint) (*agent.Client, error) {
		one.Lock()
		defer one.Unlock()
		return start(ctx, e)
	}}
	for _, n := range net.Nodes() {
		var pod arena.Endpoint
		if p := slices.IndexFunc(net.Pods(), func(e arena.Endpoint) bool { return e.Node() == n.Name() }); p >= 0 {
			pod = net.Pods()[p]
		}
		out.Add(n.Name(), "", nil, n, pod)
	}
	return out
}

// meter is a mesh that is being measured.
type meter struct {
	Options
	nodes []mesh.Node
	rng   *rand.Rand
	ends  map[string][]end // by path and node
}

// end is an endpoint with its agent and what it serves.
type end struct {
	endpoint arena.Endpoint
	agent    *agent.Client
	ports    agent.Ports
	echo     netip.AddrPort
	mtu      int // bytes, of the endpoint's interface
}

// Run measures the mesh.
func Run(ctx context.Context, net Network, o Options) (*mesh.Report, error) {
	m := &meter{Options: o, nodes: net.Nodes, rng: rand.New(rand.NewPCG(o.Seed, 0x6d657368)), ends: map[string][]end{}}
	if m.Progress == nil {
		m.Progress = func(float64, string) {}
	}
	if err := m.start(ctx, net); err != nil {
		return nil, err
	}
	m.Progress(0.05, "round trips and packet sizes")
	figures, err := m.light(ctx)
	if err != nil {
		return nil, err
	}
	m.Progress(0.4, "bursts")
	design := mesh.NewDesign(len(m.nodes), o.Matchings, m.rng)
	slots := design.Slots(m.nodes, o.Limits)
	bursts, err := m.bursts(ctx, slots)
	if err != nil {
		return nil, err
	}
	figures = append(figures, bursts...)
	suspects := mesh.Screen(m.nodes, figures)
	trials := mesh.PlanTrials(m.nodes, suspects, m.rng)
	m.Progress(0.7, fmt.Sprintf("%d suspects again", len(suspects)))
	outcomes, err := m.trials(ctx, trials)
	if err != nil {
		return nil, err
	}
	r := mesh.NewReport(m.nodes, figures, mesh.Judge(m.nodes, suspects, outcomes))
	r.Suspects, r.Cap = len(suspects), o.Limits.Rate
	judged := map[int]bool{}
	for _, t := range trials {
		judged[t.Suspect] = true
	}
	r.Judged = len(judged)
	r.Cost = mesh.CostOf(m.nodes, slots, o.Limits)
	return r, nil
}

// start starts an agent at every end. A node without a pod is measured on the nodes' network
// only, and the other way round.
func (m *meter) start(ctx context.Context, net Network) error {
	for path, list := range map[string][]arena.Endpoint{mesh.Host: net.Host, mesh.Pod: net.Pod} {
		ends := make([]end, len(list))
		m.ends[path] = ends
		group, together := errgroup.WithContext(ctx)
		group.SetLimit(max(1, m.Senders))
		for i, e := range list {
			if e != nil {
				group.Go(func() (err error) {
					ends[i], err = open(ctx, together, net, e)
					return err
				})
			}
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// open starts the agent at an endpoint, which lives as long as life, and what it serves.
func open(life, ctx context.Context, net Network, at arena.Endpoint) (e end, err error) {
	e.endpoint = at
	if e.agent, err = net.Agent(life, at); err != nil {
		return e, err
	}
	if e.ports, err = e.agent.ServeTraffic(ctx, at.Addr()); err != nil {
		return e, err
	}
	port, err := e.agent.Echo(ctx, at.Addr())
	if err != nil {
		return e, err
	}
	e.echo = netip.AddrPortFrom(at.Addr(), port)
	hello, err := e.agent.Hello(ctx, at.Addr())
	e.mtu = hello.MTU
	return e, err
}

// at returns an end, and false if the node has none on that network.
func (m *meter) at(path string, node int) (end, bool) {
	e := m.ends[path][node]
	return e, e.endpoint != nil
}

// partners returns the others whom a node probes.
func (m *meter) partners(node int) []int {
	var out []int
	for _, n := range m.rng.Perm(len(m.nodes)) {
		if n != node {
			out = append(out, n)
		}
	}
	if m.Partners > 0 && m.Partners < len(out) {
		out = out[:m.Partners]
	}
	return out
}

// maxLate is the share of late requests from which a prober's figures blame nobody.
const maxLate = 0.05

// light measures round trips, losses and packet sizes.
func (m *meter) light(ctx context.Context) ([]mesh.Figure, error) {
	type job struct {
		path string
		node int
		to   []int
	}
	var jobs []job
	for node := range m.nodes {
		to := m.partners(node)
		for _, path := range []string{mesh.Host, mesh.Pod} {
			if _, there := m.at(path, node); there {
				jobs = append(jobs, job{path, node, to})
			}
		}
	}
	results := make([][]mesh.Figure, len(jobs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, m.Senders))
	for i, j := range jobs {
		group.Go(func() (err error) {
			results[i], err = m.probe(ctx, j.path, j.node, j.to)
			m.Progress(0.05+0.35*float64(i+1)/float64(len(jobs)), "round trips and packet sizes")
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(results...), nil
}

// probe measures round trips, losses and packet sizes from one node to others.
func (m *meter) probe(ctx context.Context, path string, node int, to []int) ([]mesh.Figure, error) {
	from, _ := m.at(path, node)
	var figures []mesh.Figure
	var targets []netip.AddrPort
	for _, n := range to {
		if e, there := m.at(path, n); there {
			figures = append(figures, mesh.Figure{Pair: mesh.Pair{From: node, To: n}, Path: path, Values: map[mesh.Metric]float64{}})
			targets = append(targets, netip.AddrPortFrom(e.endpoint.Addr(), e.ports.UDP))
		}
	}
	trips, err := m.roundTrips(ctx, from, targets)
	if err != nil {
		return nil, err
	}
	for i := range figures {
		f, t := &figures[i], trips[i]
		f.Probes = int(cmp.Or(t.Planned, int64(m.Probes)))
		f.Late = t.Late > maxLate
		f.Values[mesh.Loss] = t.Loss
		if t.Error != "" {
			f.Values[mesh.Loss] = 1
			continue
		}
		if t.P50 > 0 {
			f.Values[mesh.RTT] = t.P50
		}
		if f.Values[mesh.MTU], err = m.packetSize(ctx, path, f.Pair); err != nil {
			return nil, err
		}
	}
	return figures, nil
}

// roundTrips measures round trips from one end to targets.
func (m *meter) roundTrips(ctx context.Context, from end, targets []netip.AddrPort) ([]agent.Trip, error) {
	return from.agent.RoundTrips(ctx, agent.Trips{
		Targets: targets, Exchange: "udp", Rate: m.Rate, Duration: time.Duration(float64(m.Probes) / m.Rate * float64(time.Second)),
		AtOnce: max(1, min(4, m.Senders)),
	})
}

// packetSizes are tried from the MTU of both ends downwards. The answer is one of them or the
// MTU: enough to see that two places differ; `check mtu` finds the size to the byte.
var packetSizes = []int{8950, 1500, 1450, 1430, 1400, 1350, 1300, 1280, 1200, 1000, 576, 256}

// packetSize returns the largest packet, bytes, that crosses from one end to another in one
// piece; 0 if none does.
func (m *meter) packetSize(ctx context.Context, path string, p mesh.Pair) (float64, error) {
	from, _ := m.at(path, p.From)
	to, _ := m.at(path, p.To)
	top := min(from.mtu, to.mtu)
	for _, size := range slices.Concat([]int{top}, packetSizes) {
		if size > top {
			continue
		}
		answer, err := from.agent.ProbeSize(ctx, agent.SizeProbe{Target: to.echo, Size: size, Tries: 3})
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
func (m *meter) bursts(ctx context.Context, slots [][]mesh.Pair) ([]mesh.Figure, error) {
	var out []mesh.Figure
	for i, slot := range slots {
		paths := []string{mesh.Host, mesh.Pod}
		m.rng.Shuffle(len(paths), func(a, b int) { paths[a], paths[b] = paths[b], paths[a] })
		for _, path := range paths {
			goodput := make([]float64, len(slot))
			group, together := errgroup.WithContext(ctx)
			for j, p := range slot {
				group.Go(func() (err error) {
					goodput[j], err = m.burst(together, path, p)
					return err
				})
			}
			if err := group.Wait(); err != nil {
				return nil, err
			}
			for j, p := range slot {
				if goodput[j] > 0 {
					out = append(out, mesh.Figure{Pair: p, Path: path, Values: map[mesh.Metric]float64{mesh.Goodput: goodput[j]}})
				}
			}
			if err := sleep(ctx, m.Limits.Gap); err != nil {
				return nil, err
			}
		}
		m.Progress(0.4+0.3*float64(i+1)/float64(len(slots)), "bursts")
	}
	return out, nil
}

// leadIn is the begin of a burst that does not count.
const leadIn = 50 * time.Millisecond

// burst returns the goodput of one burst in bit/s; 0 if the receiver cannot be reached or the
// pair has no such network.
func (m *meter) burst(ctx context.Context, path string, p mesh.Pair) (float64, error) {
	from, ok := m.at(path, p.From)
	to, there := m.at(path, p.To)
	if !ok || !there {
		return 0, nil
	}
	got, err := from.agent.SendBurst(ctx, agent.Burst{
		Target: netip.AddrPortFrom(to.endpoint.Addr(), to.ports.Sink), Protocol: "tcp", Rate: unit.BitRate(m.Limits.Rate), LeadIn: leadIn, Duration: m.Limits.Slice,
	})
	if err != nil {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		return 0, nil // losses name the pair
	}
	return got.Goodput, nil
}

// trials carries out the second pass: cycle by cycle, a trial's test and controls in random order.
func (m *meter) trials(ctx context.Context, trials []mesh.Trial) ([]mesh.Outcome, error) {
	order := m.rng.Perm(len(trials))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(trials[a].Cycle, trials[b].Cycle) })
	var out []mesh.Outcome
	for done, i := range order {
		t := trials[i]
		pairs := append([]mesh.Pair{t.Test}, t.Controls...)
		values := make([]float64, len(pairs))
		for _, p := range m.rng.Perm(len(pairs)) {
			var err error
			if values[p], err = m.once(ctx, t, pairs[p]); err != nil {
				return nil, err
			}
		}
		out = append(out, mesh.Outcome{Trial: t, Value: values[0], ControlValues: values[1:], Probes: m.Probes})
		m.Progress(0.7+0.3*float64(done+1)/float64(len(order)), "suspects again")
	}
	return out, nil
}

// once measures one pair by the trial's metric.
func (m *meter) once(ctx context.Context, t mesh.Trial, p mesh.Pair) (float64, error) {
	switch t.Metric {
	case mesh.Goodput:
		v, err := m.burst(ctx, t.Path, p)
		return max(v, 1), err // 1 bit/s: nothing arrived, and its logarithm is a number
	case mesh.MTU:
		v, err := m.packetSize(ctx, t.Path, p)
		return max(v, 1), err
	}
	from, ok := m.at(t.Path, p.From)
	to, there := m.at(t.Path, p.To)
	if !ok || !there {
		return 0, fmt.Errorf("mesh: no endpoint on the %s network for %v", t.Path, p)
	}
	trips, err := m.roundTrips(ctx, from, []netip.AddrPort{netip.AddrPortFrom(to.endpoint.Addr(), to.ports.UDP)})
	if err != nil {
		return 0, err
	}
	if t.Metric == mesh.Loss {
		if trips[0].Error != "" {
			return 1, nil
		}
		return trips[0].Loss, nil
	}
	if trips[0].P50 <= 0 {
		return 1, nil // a second: no answer in time
	}
	return trips[0].P50, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
