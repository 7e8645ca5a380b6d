package bench

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/sysmon"
	"github.com/cnibench/cnibench/internal/workload"
)

// site is a contender that is up, with an agent at every node and pod.
type site struct {
	net    arena.Network
	agents map[string]*agent.Client // by endpoint
	posts  map[string]post          // where they are, by the same
}

// post is where an agent is wanted.
type post struct {
	at    arena.Endpoint
	exe   string
	scope sysmon.Scope
}

// setUp brings the contender up and proves that the pods of every path reach
// each other. took is the time of the network's own part of that, without the
// agents. What it returns must be closed, also after an error.
func (r *Runner) setUp(ctx context.Context, entry result.Entry, steps []result.Step) (s *site, took time.Duration, err error) {
	s = &site{agents: map[string]*agent.Client{}, posts: map[string]post{}}
	c, err := r.Catalogue(entry.ID)
	if err != nil {
		return s, 0, err
	}
	begin := time.Now()
	net, err := r.Arena.Up(ctx, c, entry.Underlay)
	if err != nil {
		return s, time.Since(begin), err
	}
	s.net, took = net, time.Since(begin)
	pairs := map[string]arena.Pair{}
	for _, step := range steps {
		if _, known := pairs[step.Path]; known {
			continue
		}
		path := step.Path
		if path == arena.PathService {
			path = arena.PathPod // there is an address once a server listens
		}
		pair, err := net.Pair(ctx, path)
		if err != nil {
			return s, took, fmt.Errorf("path %s: %w", path, err)
		}
		pairs[step.Path] = pair
	}
	for _, node := range net.Nodes() {
		if err := s.hire(ctx, r.Exe, node, sysmon.ScopeNode); err != nil {
			return s, took, err
		}
	}
	for _, pod := range net.Pods() {
		if err := s.hire(ctx, r.Exe, pod, sysmon.ScopePod); err != nil {
			return s, took, err
		}
	}
	for path, pair := range pairs {
		settle := time.Now()
		if err := s.reach(ctx, path, pair); err != nil {
			return s, took, fmt.Errorf("path %s: %w", path, err)
		}
		took += time.Since(settle)
	}
	return s, took, nil
}

// hire starts an agent at the endpoint. The baseline's pods are the nodes
// themselves: they get a second one that records nothing, so that every
// contender has as many agents in its memory.
func (s *site) hire(ctx context.Context, exe string, e arena.Endpoint, scope sysmon.Scope) error {
	name := e.Name()
	if s.agents[name] != nil {
		name += "-spare"
	}
	s.posts[name] = post{e, exe, scope}
	return s.fill(ctx, name)
}

// fill starts the agent of a post.
func (s *site) fill(ctx context.Context, name string) error {
	p := s.posts[name]
	a, err := agent.Start(ctx, p.at, p.exe, map[string]string{"node": p.at.Node(), "endpoint": name}, p.scope)
	if err != nil {
		return err
	}
	s.agents[name] = a
	return nil
}

// mend starts agents anew that have ended, as all do in a cluster whose API
// server was away: their step is lost, those after it need not be.
func (s *site) mend(ctx context.Context) error {
	for name, a := range s.agents {
		if _, err := a.Hello(ctx, netip.Addr{}); !errors.Is(err, agent.ErrEnded) {
			continue
		}
		_ = a.Close() // it has ended
		if err := s.fill(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// reachTimeout is how long a new network may take until packets pass: ARP,
// neighbour discovery, the switch's learning.
const reachTimeout = 3 * time.Second

// reach proves that the client reaches the server at the path's address.
func (s *site) reach(ctx context.Context, path string, p arena.Pair) error {
	server, client := s.agents[p.Server.Name()], s.agents[p.Client.Name()]
	if server == nil || client == nil {
		return fmt.Errorf("no agent at %s or %s", p.Client.Name(), p.Server.Name())
	}
	port, err := server.Echo(ctx, p.Server.Addr())
	if err != nil {
		return err
	}
	if path == arena.PathService {
		both := []arena.Port{{Protocol: arena.TCP, Number: uint16(port)}, {Protocol: arena.UDP, Number: uint16(port)}}
		if p, _, err = s.net.Service(ctx, both, 0); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	for {
		err := client.Reach(ctx, p.Target, p.At(port).Port())
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not reach %s at %s: %w", p.Client.Name(), p.Server.Name(), p.Target, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// pair is what the step crosses; of a Service, sync is the time that
// programming it and the others took.
func (s *site) pair(ctx context.Context, w workload.Workload, params workload.Params, step result.Step) (p arena.Pair, sync time.Duration, err error) {
	if step.Path != arena.PathService {
		if err := s.net.Fresh(ctx); err != nil {
			return p, 0, err
		}
		p, err = s.net.Pair(ctx, step.Path)
		return p, 0, err
	}
	serving, ok := w.(workload.Serving)
	if !ok {
		return p, 0, fmt.Errorf("workload %s can't stand behind a Service", step.Workload)
	}
	return s.net.Service(ctx, serving.Ports(params), step.Services)
}

// names are the site's nodes and pods, each once.
func (s *site) names() []string {
	var names []string
	for _, e := range append(s.net.Nodes(), s.net.Pods()...) {
		if !slices.Contains(names, e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// close dismisses the agents and takes the network down, also after ctx ended.
func (s *site) close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	for _, a := range s.agents {
		_ = a.Close() // what does not end by itself is killed with the network
	}
	if s.net == nil {
		return nil
	}
	return s.net.Down(ctx)
}
