// Package check proves what a contender's network does: one file per check. A
// check sees a network only through arena.Network and the agents at its nodes
// and pods; it measures no load, ranks nothing and prints nothing. Next:
// all.go lists the checks, mtu.go is one; run.go brings contenders up for them.
package check

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/sysmon"
)

// Check is one question about a network that is up.
type Check interface {
	Info() Info
	// Run asks it. That the network fails is a result; an error is that the
	// question could not be asked.
	Run(ctx context.Context, s *Subject) (Result, error)
}

// Info describes a check.
type Info struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
}

// Conformance compares what was found with what the contender's file claims.
type Conformance string

// The values.
const (
	Pass Conformance = "pass" // as claimed
	Fail Conformance = "fail" // not as claimed
	Skip Conformance = "skip" // not asked; the text says why
)

// Result is what a check found of one contender.
type Result struct {
	Check     string `json:"check"`
	Contender string `json:"contender"`
	// Nodes are those whose pods were asked: the result holds between them. A cluster's have
	// its own names.
	Nodes []string `json:"nodes"`
	// UnderlayMTU is that of the nodes' interface, bytes; 0 is unknown.
	UnderlayMTU int    `json:"underlay_mtu,omitempty"`
	Cases       []Case `json:"cases"`
	// Error is why the check could not be carried out.
	Error string `json:"error,omitempty"`
	// Environment is the result as keys of a run's environment; docs/findings.md.
	Environment map[string]string `json:"environment"`
}

// Case is one part of a check.
type Case struct {
	Name    string      `json:"name"`
	Verdict Conformance `json:"verdict"`
	Found   string      `json:"found,omitempty"` // the fact in a word: plain, encrypted, fits, exceeds, …
	Text    string      `json:"text"`            // a sentence with the figures
	Next    string      `json:"next,omitempty"`  // what to do about it
	// Values are the figures: bytes, counts of packets or connections, or
	// milliseconds where the name ends in _ms.
	Values map[string]int `json:"values,omitempty"`
}

// Verdict returns the worst of the cases: fail, then pass; skip where no case was
// asked.
func (r *Result) Verdict() Conformance {
	worst := Skip
	for _, c := range r.Cases {
		switch {
		case c.Verdict == Fail:
			return Fail
		case c.Verdict == Pass:
			worst = Pass
		}
	}
	return worst
}

// MainCase returns the case that says most: the first that failed, else the first
// that was asked; nil where there is none.
func (r *Result) MainCase() *Case {
	for _, verdict := range []Conformance{Fail, Pass, Skip} {
		for i := range r.Cases {
			if r.Cases[i].Verdict == verdict {
				return &r.Cases[i]
			}
		}
	}
	return nil
}

// Rename passes every text that is for people through as, which gives nodes other names.
// The keys of the environment, which go into reports, keep theirs.
func (r *Result) Rename(as func(string) string) {
	for i := range r.Nodes {
		r.Nodes[i] = as(r.Nodes[i])
	}
	for i := range r.Cases {
		c := &r.Cases[i]
		c.Text, c.Next = as(c.Text), as(c.Next)
	}
	r.Error = as(r.Error)
}

// set notes a key of the run's environment.
func (r *Result) set(key, value string) {
	if r.Environment == nil {
		r.Environment = map[string]string{}
	}
	r.Environment[key] = value
}

// key returns the environment's key of a case.
func (r *Result) key(name string) string { return "check." + r.Check + "." + r.Contender + "." + name }

// Subject is a contender that is up, with agents where a check wants them.
type Subject struct {
	Contender *contender.Contender
	Network   arena.Network
	Exe       string // this program, as endpoints start it for agents

	agents map[string]*agent.Client // by endpoint
	echoes map[string]uint16        // port of the agent's echo
}

// Agent returns the agent at the endpoint, started when first asked for.
func (s *Subject) Agent(ctx context.Context, e arena.Endpoint) (*agent.Client, error) {
	if a := s.agents[e.Name()]; a != nil {
		return a, nil
	}
	a, err := agent.Start(ctx, e, s.Exe, map[string]string{"node": e.Node(), "endpoint": e.Name()}, sysmon.ScopePod)
	if err != nil {
		return nil, err
	}
	if s.agents == nil {
		s.agents = map[string]*agent.Client{}
	}
	s.agents[e.Name()] = a
	return a, nil
}

// dismiss ends the agent at the endpoint, which may go away before the network.
func (s *Subject) dismiss(e arena.Endpoint) {
	if a := s.agents[e.Name()]; a != nil {
		_ = a.Close() // what does not end by itself is killed with the endpoint
	}
	delete(s.agents, e.Name())
	delete(s.echoes, e.Name())
}

// Echo returns an address at which the endpoint's agent echoes TCP and UDP.
func (s *Subject) Echo(ctx context.Context, e arena.Endpoint) (netip.AddrPort, error) {
	if port, open := s.echoes[e.Name()]; open {
		return netip.AddrPortFrom(e.Addr(), port), nil
	}
	a, err := s.Agent(ctx, e)
	if err != nil {
		return netip.AddrPort{}, err
	}
	port, err := a.Echo(ctx, e.Addr())
	if err != nil {
		return netip.AddrPort{}, err
	}
	if s.echoes == nil {
		s.echoes = map[string]uint16{}
	}
	s.echoes[e.Name()] = port
	return netip.AddrPortFrom(e.Addr(), port), nil
}

// Node returns the machine that the endpoint is on.
func (s *Subject) Node(e arena.Endpoint) (arena.Endpoint, error) {
	for _, n := range s.Network.Nodes() {
		if n.Name() == e.Node() {
			return n, nil
		}
	}
	return nil, fmt.Errorf("%s is on %s, which is no node of the network", e.Name(), e.Node())
}

// underlay returns the node's interface on the underlay: the network's uplink, or
// on a node that has none of that name the one that holds its address.
func (s *Subject) underlay(ctx context.Context, node arena.Endpoint) (agent.Interface, error) {
	a, err := s.Agent(ctx, node)
	if err != nil {
		return agent.Interface{}, err
	}
	hello, err := a.Hello(ctx, netip.Addr{})
	if err != nil {
		return agent.Interface{}, err
	}
	for _, matches := range []func(agent.Interface) bool{
		func(i agent.Interface) bool { return i.Name == s.Network.Uplink() },
		func(i agent.Interface) bool {
			return slices.ContainsFunc(i.Addrs, func(p netip.Prefix) bool { return p.Addr() == node.Addr() })
		},
	} {
		if i := slices.IndexFunc(hello.Interfaces, matches); i >= 0 {
			return hello.Interfaces[i], nil
		}
	}
	return agent.Interface{}, fmt.Errorf("%s has neither an interface %s nor one with the address %s", node.Name(), s.Network.Uplink(), node.Addr())
}

// settleTime is how long a new network may take until packets pass: long, for
// an emulated kernel that agrees on keys.
const settleTime = 30 * time.Second

// reach proves that the client reaches the target, which echoes, over TCP and
// UDP, as soon as the network has settled.
func reach(ctx context.Context, client *agent.Client, p agent.Probe) error {
	for end := time.Now().Add(settleTime); ; {
		r, err := client.Probe(ctx, p)
		if err != nil {
			return err
		}
		if err = r.Err(); err == nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s is not reached: %w", p.Target, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Close dismisses the agents.
func (s *Subject) Close() {
	for _, a := range s.agents {
		_ = a.Close() // what does not end by itself is killed with the network
	}
}
