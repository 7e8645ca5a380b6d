package bench

import (
	"context"
	"errors"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/tune"
)

// Lab is a lab whose contenders may have settings applied: in every namespace by a
// program inside of it, and, where Host is set, to the machine itself, from Up to Down.
type Lab struct {
	arena.Arena
	Exe      string                  // this program, as the endpoints start it
	Variants map[string]tune.Variant // by id; others come up as they are
	// Host is the machine for settings that are the whole machine's; nil: they
	// are not applied. Journal keeps their old values.
	Host    *tune.Machine
	Journal *tune.Journal
	// WholeMachine: see tune.Request.
	WholeMachine bool
}

// Up implements arena.Arena.
func (l *Lab) Up(ctx context.Context, c *contender.Contender, variant string) (arena.Network, error) {
	v, tuned := l.Variants[c.ID]
	if !tuned {
		return l.Arena.Up(ctx, c, variant)
	}
	n := &labNetwork{lab: l, visited: newVisited(nil), inside: v.Request, seen: map[string]bool{}}
	if l.Host != nil {
		var err error
		if n.inside, err = v.Of(tune.ScopeNamespace); err != nil {
			return nil, err
		}
		machine, err := v.Of(tune.ScopeMachine)
		if err != nil {
			return nil, err
		}
		a, err := tune.SetMachine(ctx, l.Host, l.Journal, machine)
		if err != nil {
			return nil, err
		}
		n.mark = a.Mark
		n.note(machine.Names(), a)
	}
	n.inside.WholeMachine = l.WholeMachine
	inner, err := l.Arena.Up(ctx, c, variant)
	if err != nil {
		return nil, errors.Join(err, n.takeBack(ctx))
	}
	n.Network = inner
	if err := n.set(ctx, append(inner.Nodes(), inner.Pods()...)); err != nil {
		return nil, errors.Join(err, n.Down(context.WithoutCancel(ctx)))
	}
	return n, nil
}

// labNetwork is a contender of the lab that is up, with its settings.
type labNetwork struct {
	visited
	lab    *Lab
	inside tune.Request // for every endpoint
	mark   int
	seen   map[string]bool // endpoints that are done
}

// Pair implements arena.Network: an endpoint that was made for the path is
// set, too.
func (n *labNetwork) Pair(ctx context.Context, path string) (arena.Pair, error) {
	p, err := n.Network.Pair(ctx, path)
	if err != nil {
		return p, err
	}
	return p, n.set(ctx, []arena.Endpoint{p.Client, p.Server})
}

// Down implements arena.Network.
func (n *labNetwork) Down(ctx context.Context) error {
	return errors.Join(n.Network.Down(ctx), n.takeBack(ctx))
}

// set asks a program inside each endpoint to set what its namespace has.
func (n *labNetwork) set(ctx context.Context, endpoints []arena.Endpoint) error {
	for _, e := range endpoints {
		if n.seen[e.Name()] || len(n.inside.Names()) == 0 {
			continue
		}
		n.seen[e.Name()] = true
		a, err := ask(ctx, e, n.inside, n.lab.Exe, "tune", "here")
		if err != nil {
			return err
		}
		n.note(n.inside.Names(), a)
	}
	return nil
}

// takeBack takes the machine's own settings back.
func (n *labNetwork) takeBack(ctx context.Context) error {
	if n.lab.Host == nil {
		return nil
	}
	return tune.RevertTo(ctx, n.lab.Host, n.lab.Journal, n.mark)
}
