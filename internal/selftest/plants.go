// Package selftest proves the instrument on the machine at hand: it plants what is
// known into copies of the baseline (a link that is capped, one that loses packets,
// a slow path, a wrong MTU, nothing at all) and judges whether a run found it. It
// makes no run itself. Next: judge.go.
package selftest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// What is planted, in the units of result's metrics.
const (
	cappedRate   = 1e9  // bit/s
	plantedLoss  = 0.02 // of the datagrams
	rules        = 400  // that each packet passes
	narrowMTU    = 1400 // bytes
	streamPort   = 5301 // of the loads that send datagrams
	bulkStep     = "bulk"
	datagramStep = "datagrams"
	requestStep  = "requests"
)

// Baseline is the contender that is copied, and beside which each copy is measured.
const Baseline = "host"

// plant is a copy of the baseline with something done to it.
type plant struct {
	id, summary string
	steps       []string // that it takes
	commands    []command
}

// command is a program at a node, 0 or 1; UPLINK in its arguments is the node's
// interface on the underlay.
type command struct {
	node  int
	argv  string
	stdin string
}

// plants are the copies.
func plants() []plant {
	ruleset := func(body string) string {
		return "table inet planted {\n chain in {\n  type filter hook input priority 0;\n" + body + " }\n}\n"
	}
	var many strings.Builder
	for i := range rules {
		fmt.Fprintf(&many, "  ip saddr 192.0.2.%d tcp dport %d drop\n", 1+i%250, 1+i)
	}
	const load = "nft -f -"
	return []plant{
		{"twin", "the same network a second time", []string{bulkStep, requestStep}, nil},
		{"capped", fmt.Sprintf("a link of %v", unit.BitRate(cappedRate)), []string{bulkStep},
			[]command{{0, fmt.Sprintf("tc qdisc add dev UPLINK root tbf rate %dbit burst 128kb latency 10ms", int64(cappedRate)), ""}}},
		{"lossy", fmt.Sprintf("%.0f %% of the datagrams are dropped", 100*plantedLoss), []string{datagramStep},
			[]command{{1, load, ruleset(fmt.Sprintf("  udp dport %d numgen random mod %d == 0 drop\n", streamPort, int(1/plantedLoss)))}}},
		{"slow", fmt.Sprintf("%d rules that every packet passes", rules), []string{bulkStep, requestStep},
			[]command{{0, load, ruleset(many.String())}, {1, load, ruleset(many.String())}}},
		{"narrow", fmt.Sprintf("a node whose link takes %d bytes while the other one's takes more", narrowMTU), nil,
			[]command{{1, fmt.Sprintf("ip link set UPLINK mtu %d", narrowMTU), ""}}},
	}
}

// Programs are what the plants run at the nodes.
func Programs() []string { return []string{"nft", "tc", "ip"} }

// Contenders are the copies of the baseline, for the run's catalogue.
func Contenders(baseline *contender.Contender) []*contender.Contender {
	var list []*contender.Contender
	for _, p := range plants() {
		c := *baseline
		c.ID, c.Summary = p.id, "self-test: "+p.summary
		list = append(list, &c)
	}
	return list
}

// Steps are those of the run.
func Steps() []result.Step {
	return []result.Step{
		{ID: bulkStep, Summary: "TCP, 1 stream", Workload: "tcp_bulk", Path: arena.PathPod},
		{ID: datagramStep, Summary: "UDP, 1 stream at 200 Mbit/s", Workload: "udp_bulk", Path: arena.PathPod, Params: map[string]any{"bandwidth": "200M"}},
		{ID: requestStep, Summary: "TCP requests and responses, one at a time", Workload: "tcp_rr", Path: arena.PathPod, Params: map[string]any{"connections": 1}},
	}
}

// Gaps are the steps that contenders don't take, because nothing is planted for them.
func Gaps() []result.Gap {
	var gaps []result.Gap
	for _, p := range plants() {
		for _, step := range Steps() {
			if !slices.Contains(p.steps, step.ID) {
				gaps = append(gaps, result.Gap{Contender: p.id, Step: step.ID})
			}
		}
	}
	return gaps
}

// Planted is an arena in which the copies come up with what is planted in them.
type Planted struct{ arena.Arena }

// Up implements arena.Arena.
func (a Planted) Up(ctx context.Context, c *contender.Contender, variant string) (arena.Network, error) {
	net, err := a.Arena.Up(ctx, c, variant)
	if err != nil {
		return nil, err
	}
	for _, p := range plants() {
		if p.id != c.ID {
			continue
		}
		for _, c := range p.commands {
			if err := c.run(ctx, net); err != nil {
				return nil, errors.Join(fmt.Errorf("self-test: plant %s: %s: %w", p.id, c.argv, err), net.Down(context.WithoutCancel(ctx)))
			}
		}
	}
	return net, nil
}

func (c command) run(ctx context.Context, net arena.Network) error {
	argv := strings.Fields(strings.ReplaceAll(c.argv, "UPLINK", net.Uplink()))
	p, err := net.Nodes()[c.node].Start(ctx, host.Command{Argv: argv, Stdin: strings.NewReader(c.stdin), Aside: true})
	if err != nil {
		return err
	}
	return p.Wait()
}
