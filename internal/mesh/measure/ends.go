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

// Agents are agents at endpoints. They stay from one mesh to the next, until Close.
type Agents struct {
	life   context.Context
	end    context.CancelFunc
	at     map[arena.Endpoint]*end
	single bool // of one mesh: an agent that does not start ends it
}

// NewAgents returns none yet. Their life is not that of ctx, so that Close can end them in order.
func NewAgents(ctx context.Context) *Agents {
	a := &Agents{at: map[arena.Endpoint]*end{}}
	a.life, a.end = context.WithCancel(context.WithoutCancel(ctx))
	return a
}

// ends are the agents of a mesh by network and node. Agents that end are started again.
type ends struct {
	pool  *Agents
	net   Network
	index []int // of the plan's nodes in net; -1: not there

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
	comeSoon   = 5 * time.Second  // the same where the next round tries again
	tryAgain   = 2 * time.Second
)

// errGone says that a node's agent ended and did not come back.
var errGone = errors.New("its agent ended and did not come back")

// newEnds returns the ends of the plan's nodes. A node without a pod is measured on the nodes'
// network only, and the other way round.
func newEnds(net Network, plan *mesh.Plan, agents *Agents) *ends {
	e := &ends{pool: agents, net: net, at: map[string][]*end{}, gone: map[int]bool{}}
	for _, n := range plan.Nodes {
		e.index = append(e.index, slices.IndexFunc(net.Nodes, func(o mesh.Node) bool { return o.Name == n.Name }))
	}
	used := map[arena.Endpoint]bool{}
	for path, list := range map[string][]arena.Endpoint{mesh.Host: net.Host, mesh.Pod: net.Pod} {
		e.at[path] = make([]*end, len(plan.Nodes))
		for node, i := range e.index {
			if i < 0 || list[i] == nil {
				continue
			}
			at := agents.at[list[i]]
			if at == nil {
				at = &end{endpoint: list[i]}
				agents.at[list[i]] = at
			}
			used[list[i]], e.at[path][node] = true, at
		}
	}
	for endpoint, at := range agents.at {
		if !used[endpoint] {
			delete(agents.at, endpoint)
			at.close()
		}
	}
	return e
}

// open has an agent at every end.
func (m *meter) open(ctx context.Context) error {
	group, together := errgroup.WithContext(ctx)
	group.SetLimit(openAtOnce)
	for _, path := range paths {
		for node, at := range m.at[path] {
			if at == nil {
				continue
			}
			group.Go(func() error {
				err := m.ready(together, at)
				if err == nil || m.pool.single || together.Err() != nil {
					return err
				}
				return m.dropNode(node, err)
			})
		}
	}
	return group.Wait()
}

// ready has an agent at the end: the one that is there, if it answers, else a new one.
func (e *ends) ready(ctx context.Context, at *end) error {
	if at.agent != nil {
		if _, err := at.agent.Hello(ctx, netip.Addr{}); err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		at.close()
	}
	return e.start(ctx, at)
}

// start starts the agent at the end, and what it serves.
func (e *ends) start(ctx context.Context, at *end) error {
	addr := at.endpoint.Addr()
	client, err := e.net.Start(e.pool.life, at.endpoint)
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

// close ends the agent, if there is one. What does not end is killed with its endpoint.
func (at *end) close() {
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.agent != nil {
		_ = at.agent.Close()
		at.agent = nil
	}
}

// Close ends all agents.
func (a *Agents) Close() {
	var group errgroup.Group
	group.SetLimit(openAtOnce)
	for _, at := range a.at {
		group.Go(func() error { at.close(); return nil })
	}
	_ = group.Wait()
	a.end()
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
	if !e.has(path, node) { // found out while this waited
		return false, errGone
	}
	client := e.use(path, node).Client
	if _, err = client.Hello(ctx, netip.Addr{}); err == nil || ctx.Err() != nil {
		return false, ctx.Err()
	}
	_ = client.Close() // it is no more
	patience := comeSoon
	if e.pool.single {
		patience = comeBack
	}
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if err = e.start(ctx, at); err == nil || ctx.Err() != nil {
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
