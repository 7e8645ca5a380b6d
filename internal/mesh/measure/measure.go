// Package measure carries out what package mesh plans on a network that is up: it starts an
// agent on every node and in a pod on every node, has them measure round trips, losses, packet
// sizes and bursts, and hands the figures to mesh. It sees the network only through arena
// endpoints and agents, so that it serves every arena, and decides nothing about blame. Next:
// ends.go holds the agents, passes.go measures.
package measure

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/mesh"
	"github.com/cnibench/cnibench/internal/sysmon"
)

// Options say where figures go.
type Options struct {
	// Known are figures that need not be measured again, of the mesh that is resumed.
	Known []mesh.Figure
	// Seal keeps figures that were just measured; nil: nobody wants them.
	Seal     func([]mesh.Figure) error
	Progress func(done float64, text string) // done from 0 to 1
	// Agents stay for the next mesh; nil: the mesh has agents of its own. A node whose agent
	// does not start then is left out.
	Agents *Agents
}

// Network is a network whose nodes and pods can be asked.
type Network struct {
	Nodes []mesh.Node
	Host  []arena.Endpoint // by node; nil where the nodes' network may not be used
	Pod   []arena.Endpoint // by node; nil where there is no pod
	// Absent says of nodes that were asked for why they take no part.
	Absent []string
	// Start starts an agent at an endpoint. Several may start at the same time.
	Start func(ctx context.Context, e arena.Endpoint) (*agent.Client, error)
}

// Add adds a node.
func (n *Network) Add(name, zone string, labels map[string]string, host, pod arena.Endpoint) {
	n.Nodes = append(n.Nodes, mesh.Node{Name: name, Zone: zone, Labels: labels})
	n.Host, n.Pod = append(n.Host, host), append(n.Pod, pod)
}

// Of returns the network's nodes, each with the first pod on it. exe is this program there.
func Of(net arena.Network, exe string) Network {
	out := Network{Start: func(ctx context.Context, e arena.Endpoint) (*agent.Client, error) {
		return agent.Start(ctx, e, exe, map[string]string{"node": e.Node(), "endpoint": e.Name()}, sysmon.ScopePod)
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
	plan mesh.Plan
	*ends

	mu      sync.Mutex
	figures []mesh.Figure
	have    map[unit]mesh.Figure
}

// unit is what one figure is of.
type unit struct {
	mesh.Pair
	path  string
	trial int
	burst bool
}

func unitOf(f *mesh.Figure) unit {
	_, burst := f.Values[mesh.Goodput]
	return unit{f.Pair, f.Path, f.Trial, burst && f.Trial == 0}
}

// Run measures the mesh. The plan's nodes are looked for in the network by their names.
func Run(ctx context.Context, net Network, plan mesh.Plan, o Options) (*mesh.Report, error) {
	if o.Progress == nil {
		o.Progress = func(float64, string) {}
	}
	if o.Seal == nil {
		o.Seal = func([]mesh.Figure) error { return nil }
	}
	m := &meter{Options: o, plan: plan, have: map[unit]mesh.Figure{}, figures: slices.Clone(o.Known)}
	for i := range o.Known {
		m.have[unitOf(&o.Known[i])] = o.Known[i]
	}
	var err error
	agents := o.Agents
	if agents == nil {
		agents = NewAgents(ctx)
		agents.single = true
		defer agents.Close()
	}
	m.ends = newEnds(net, &plan, agents)
	if err = m.open(ctx); err != nil {
		return nil, err
	}
	for _, pass := range []func(context.Context) error{m.light, m.bursts, m.trials} {
		if err := pass(ctx); err != nil {
			return nil, err
		}
	}
	r := plan.Report(m.figures)
	r.Absent = append(r.Absent, net.Absent...)
	return r, nil
}

// keep seals figures and counts them as measured.
func (m *meter) keep(list ...mesh.Figure) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(list) == 0 {
		return nil
	}
	for i := range list {
		m.have[unitOf(&list[i])] = list[i]
	}
	m.figures = append(m.figures, list...)
	return m.Seal(list)
}

// dropNode says that the node is measured no more.
func (m *meter) dropNode(node int, why error) error {
	if !m.drop(node) {
		return nil
	}
	m.Progress(-1, fmt.Sprintf("%s is measured no more: %v", m.plan.Nodes[node].Name, why))
	return m.keep(mesh.Figure{Pair: mesh.Pair{From: node, To: node}, Path: mesh.Host, Gone: true})
}

func (m *meter) known(u unit) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.have[u]
	return ok
}
