package measure

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/mesh"
)

// ends are the agents of a mesh by network and node. Agents that end are started again.
type ends struct {
	net   Network
	index []int // of the plan's nodes in net; -1: not there
	life  context.Context
	end   context.CancelFunc

	mu   sync.Mutex
	at   map[string][]*end
	gone map[int]bool
}

// end is an endpoint with its agent and what the agent serves.
type end struct {
	endpoint arena.Endpoint
	opening  sync.Mutex // held while the agent is started again
	mu       sync.Mutex
	agent    *agent.Client
	ports    agent.Ports
	echo     netip.AddrPort
	mtu      int // bytes, of the endpoint's interface
}

// serving is what of an end is used at one time.
type serving struct {
	*agent.Client
	addr  netip.Addr
	ports agent.Ports
	echo  netip.AddrPort
	mtu   int
}

const (
	openAtOnce = 20               // agents that start at the same time
	comeBack   = 75 * time.Second // in which an agent must be there again: an API server restarts within half of that
	tryAgain   = 2 * time.Second
)

// errGone says that a node's agent ended and did not come back.
var errGone = errors.New("its agent ended and did not come back")

// openEnds starts an agent at every end of the plan's nodes. A node without a pod is measured on
// the nodes' network only, and the other way round.
func openEnds(ctx context.Context, net Network, plan *mesh.Plan) (*ends, error) {
	e := &ends{net: net, at: map[string][]*end{}, gone: map[int]bool{}}
	e.life, e.end = context.WithCancel(context.WithoutCancel(ctx))
	for _, n := range plan.Nodes {
		e.index = append(e.index, slices.IndexFunc(net.Nodes, func(o mesh.Node) bool { return o.Name == n.Name }))
	}
	group, together := errgroup.WithContext(ctx)
	group.SetLimit(openAtOnce)
	for path, list := range map[string][]arena.Endpoint{mesh.Host: net.Host, mesh.Pod: net.Pod} {
		all := make([]*end, len(plan.Nodes))
		e.at[path] = all
		for node, i := range e.index {
			if i >= 0 && list[i] != nil {
				all[node] = &end{endpoint: list[i]}
				group.Go(func() error { return e.open(together, all[node]) })
			}
		}
	}
	if err := group.Wait(); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

// open starts the agent at the end, and what it serves.
func (e *ends) open(ctx context.Context, at *end) error {
	addr := at.endpoint.Addr()
	client, err := e.net.Start(e.life, at.endpoint)
	if err != nil {
		return err
	}
	ports, err := client.ServeTraffic(ctx, addr)
	if err == nil {
		var port uint16
		var hello agent.Hello
		if port, err = client.Echo(ctx, addr); err == nil {
			hello, err = client.Hello(ctx, addr)
		}
		if err == nil {
			at.mu.Lock()
			defer at.mu.Unlock()
			at.agent, at.ports, at.echo, at.mtu = client, ports, netip.AddrPortFrom(addr, port), hello.MTU
			return nil
		}
	}
	_ = client.Close() // err is the cause
	return err
}

// close ends all agents.
func (e *ends) close() {
	var group errgroup.Group
	group.SetLimit(openAtOnce)
	for _, list := range e.at {
		for _, at := range list {
			if at != nil && at.agent != nil {
				group.Go(func() error { _ = at.agent.Close(); return nil }) // what does not end is killed with its endpoint
			}
		}
	}
	_ = group.Wait()
	e.end()
}

// drop leaves a node out from now on; false: it was out before.
func (e *ends) drop(node int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.gone[node]
	e.gone[node] = true
	return !was
}

// has reports whether the node has an end on that network.
func (e *ends) has(path string, node int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.at[path][node] != nil && !e.gone[node]
}

// use returns what the node's end serves now. has must be true.
func (e *ends) use(path string, node int) serving {
	at := e.at[path][node]
	at.mu.Lock()
	defer at.mu.Unlock()
	return serving{at.agent, at.endpoint.Addr(), at.ports, at.echo, at.mtu}
}

// alive returns nil if the node's agent answers, or answers again after it was started anew, and
// an error that wraps errGone if it does not come back. again says that it was started anew.
func (e *ends) alive(ctx context.Context, path string, node int) (again bool, err error) {
	at := e.at[path][node]
	at.opening.Lock()
	defer at.opening.Unlock()
	client := e.use(path, node).Client
	if _, err = client.Hello(ctx, netip.Addr{}); err == nil || ctx.Err() != nil {
		return false, ctx.Err()
	}
	_ = client.Close() // it is no more
	for end := time.Now().Add(comeBack); time.Now().Before(end); {
		if err = e.open(ctx, at); err == nil || ctx.Err() != nil {
			return true, ctx.Err()
		}
		if err := sleep(ctx, tryAgain); err != nil {
			return false, err
		}
	}
	return false, fmt.Errorf("%w: %w", errGone, err)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
