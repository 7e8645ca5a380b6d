package bench

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/sysmon"
	"github.com/cnibench/cnibench/internal/workload"
)

// deployment is a contender that is up, with an agent at every node and pod.
type deployment struct {
	net    arena.Network
	agents map[string]*agent.Client // by name: the endpoint's, or for a second agent name-spare
	specs  map[string]agentSpec     // of the agents, by the same name
}

// agentSpec says where an agent runs, and how it is started.
type agentSpec struct {
	at    arena.Endpoint
	exe   string
	scope sysmon.Scope
}

// setUp brings the contender up and proves that the pods of every path reach
// each other. took is the time that the network itself needed, without the start of
// the agents. The deployment must be closed, also after an error.
func (r *Runner) setUp(ctx context.Context, entry result.Entry, steps []result.Step) (s *deployment, took time.Duration, err error) {
	s = &deployment{agents: map[string]*agent.Client{}, specs: map[string]agentSpec{}}
	c, err := r.Catalogue(entry.ID)
	if err != nil {
		return s, 0, err
	}
	begin := time.Now()
	network, err := r.Arena.Up(ctx, c, entry.Underlay)
	if err != nil {
		return s, time.Since(begin), err
	}
	s.net, took = network, time.Since(begin)
	pairs := map[string]arena.Pair{}
	for _, step := range steps {
		if _, known := pairs[step.Path]; known {
			continue
		}
		path := step.Path
		if path == arena.PathService {
			path = arena.PathPod // reach makes the Service later, when a server listens
		}
		pair, err := network.Pair(ctx, path)
		if err != nil {
			return s, took, fmt.Errorf("path %s: %w", path, err)
		}
		pairs[step.Path] = pair
	}
	for _, node := range network.Nodes() {
		s.addSpec(r.Exe, node, sysmon.ScopeNode)
	}
	for _, pod := range network.Pods() {
		s.addSpec(r.Exe, pod, sysmon.ScopePod)
	}
	if err := s.startAgents(ctx); err != nil {
		return s, took, err
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

// addSpec gives the endpoint an agent. The baseline's pods are the nodes themselves. They
// get a second agent, which records nothing, so that every contender's memory holds the
// same number of agents.
func (s *deployment) addSpec(exe string, e arena.Endpoint, scope sysmon.Scope) {
	name := e.Name()
	if _, has := s.specs[name]; has {
		name += "-spare"
	}
	s.specs[name] = agentSpec{e, exe, scope}
}

// startAgents starts all agents at once.
func (s *deployment) startAgents(ctx context.Context) error {
	var mu sync.Mutex
	var all sync.WaitGroup
	var errs []error
	for name, p := range s.specs {
		all.Go(func() {
			a, err := p.start(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			if errs = append(errs, err); err == nil {
				s.agents[name] = a
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// start starts the agent under that name.
func (p agentSpec) start(ctx context.Context, name string) (*agent.Client, error) {
	return agent.Start(ctx, p.at, p.exe, map[string]string{"node": p.at.Node(), "endpoint": name}, p.scope)
}

// restartEnded replaces the agents that have ended. In a cluster all agents end when the
// API server does not answer for a while. The steps after that need agents again.
func (s *deployment) restartEnded(ctx context.Context) error {
	for name, a := range s.agents {
		if _, err := a.Hello(ctx, netip.Addr{}); !errors.Is(err, agent.ErrEnded) {
			continue
		}
		_ = a.Close() // it has ended
		anew, err := s.specs[name].start(ctx, name)
		if err != nil {
			return err
		}
		s.agents[name] = anew
	}
	return nil
}

// reachTimeout is how long a new network may take until packets pass: for ARP or
// neighbour discovery, and until the switch has learnt the addresses.
const reachTimeout = 3 * time.Second

// reach proves that the client reaches the server at the path's address.
func (s *deployment) reach(ctx context.Context, path string, p arena.Pair) error {
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

// pair returns the client and the server of the step. On the path of a Service it
// makes the Service and as many others as the step asks for; took is how long that took.
func (s *deployment) pair(ctx context.Context, w workload.Workload, params workload.Params, step result.Step) (p arena.Pair, took time.Duration, err error) {
	if step.Path != arena.PathService {
		if err := s.net.Reset(ctx); err != nil {
			return p, 0, err
		}
		p, err = s.net.Pair(ctx, step.Path)
		return p, 0, err
	}
	serving, ok := w.(workload.Serving)
	if !ok {
		return p, 0, fmt.Errorf("workload %s can't run behind a Service; choose the path %s", step.Workload, arena.PathPod)
	}
	return s.net.Service(ctx, serving.Ports(params), step.Services)
}

// names returns the nodes and pods, each once.
func (s *deployment) names() []string {
	var names []string
	for _, e := range append(s.net.Nodes(), s.net.Pods()...) {
		if !slices.Contains(names, e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// close ends the agents and takes the network down, also after ctx has ended.
func (s *deployment) close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	for _, a := range s.agents {
		_ = a.Close() // an agent that does not end by itself is killed with the network
	}
	if s.net == nil {
		return nil
	}
	return s.net.Down(ctx)
}
