package check

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
)

// streak is how many probes in a row must end alike before the policy counts as
// effective: a single one may be a lost packet.
const streak = 5

// effect measures how long a policy takes from the request to the API server
// until it blocks a connection, and how long after its deletion the connection
// passes again. A new connection every few milliseconds tells; the result is the
// median of several policies.
func (st *stage) effect(ctx context.Context) (Case, error) {
	c := Case{Name: "effect", Verdict: Skip}
	f := flow{
		from: effectFrom, to: effectTo, source: st.address(effectFrom, false), target: st.address(effectTo, false),
		protocol: arena.TCP, port: firstPort,
	}
	switch closed, err := st.open(ctx, []flow{f}, st.limit()); {
	case err != nil:
		return c, err
	case len(closed) > 0:
		c.Text = fmt.Sprintf("without any policy %s does not reach %s (%s)", f.from, f.over(), closed[0].kind)
		return c, nil
	case !st.working:
		c.Text = "no policy had an effect"
		return c, nil
	}
	var effects, backs []time.Duration
	for range st.pace.times {
		took, happened, err := st.until(ctx, f, true, func() error { return st.sandbox.Apply(ctx, []byte(effectPolicy)) })
		if err != nil || !happened {
			c.Text = fmt.Sprintf("a policy had no effect within %v", st.pace.effectTimeout)
			return c, err
		}
		effects = append(effects, took)
		took, happened, err = st.until(ctx, f, false, func() error { return st.sandbox.Delete(ctx) })
		if err != nil {
			return c, err
		}
		if !happened {
			st.stayedClosed = append(st.stayedClosed, fmt.Sprintf("effect: %s does not reach %s within %v", f.from, f.over(), st.pace.effectTimeout))
			break
		}
		backs = append(backs, took)
	}
	c.Verdict, c.Found = Pass, timed
	c.Values = map[string]int{"times": len(effects)}
	c.Text = "a policy cut a connection off after " + figures(c.Values, "effect", effects)
	if len(backs) > 0 {
		c.Text += "; it passed again after " + figures(c.Values, "back", backs)
	}
	return c, nil
}

// figures puts the times into values and returns them in words.
func figures(values map[string]int, name string, list []time.Duration) string {
	slices.Sort(list)
	middle := (list[(len(list)-1)/2] + list[len(list)/2]) / 2
	values[name+"_ms"] = int(middle.Milliseconds())
	values[name+"_min_ms"], values[name+"_max_ms"] = int(list[0].Milliseconds()), int(list[len(list)-1].Milliseconds())
	return fmt.Sprintf("%d ms (median of %d; %d to %d)", middle.Milliseconds(), len(list), list[0].Milliseconds(), list[len(list)-1].Milliseconds())
}

// until calls act while the connection is probed, and returns how long after the
// call the connection was blocked (off), or passed.
func (st *stage) until(ctx context.Context, f flow, off bool, act func() error) (took time.Duration, happened bool, err error) {
	p := &repeatedProbe{}
	ctx, stop := context.WithCancel(ctx)
	defer p.running.Wait()
	defer stop()
	p.running.Go(func() { p.run(ctx, st, f) })
	began := time.Now()
	if err := act(); err != nil {
		return 0, false, err
	}
	for end := time.Now().Add(st.pace.effectTimeout); ; {
		at, found, err := p.findTurn(began, off)
		switch {
		case err != nil:
			return 0, false, err
		case found:
			return at.Sub(began), true, nil
		case time.Now().After(end):
			return 0, false, nil
		}
		if err := st.rest(ctx); err != nil {
			return 0, false, err
		}
	}
}

// repeatedProbe is a probe that is sent again and again, without waiting for answers.
type repeatedProbe struct {
	running sync.WaitGroup

	mu    sync.Mutex
	beats []*beat
	err   error
}

type beat struct {
	sent         time.Time
	done, passed bool
}

// maxWaiting is how many probes may be without an answer; an agent has room
// for more.
const maxWaiting = 48

func (p *repeatedProbe) run(ctx context.Context, st *stage, f flow) {
	tick := time.NewTicker(st.pace.probeInterval)
	defer tick.Stop()
	room := make(chan struct{}, maxWaiting)
	// An answer that takes longer than this counts as none, so that room is never
	// used up.
	timeout := min(st.pace.forbiddenTimeout, maxWaiting/2*st.pace.probeInterval)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		select {
		case room <- struct{}{}:
		default:
			continue
		}
		b := &beat{sent: time.Now()}
		p.mu.Lock()
		p.beats = append(p.beats, b)
		p.mu.Unlock()
		p.running.Go(func() {
			defer func() { <-room }()
			a, err := st.probe(ctx, f, timeout)
			p.mu.Lock()
			defer p.mu.Unlock()
			b.done, b.passed = true, a.Kind == agent.OK
			if err != nil && ctx.Err() == nil {
				p.err = err
			}
		})
	}
}

// findTurn looks at the probes sent after since for a streak that was blocked (off),
// or that passed, and returns when the first probe of the streak was sent.
func (p *repeatedProbe) findTurn(since time.Time, off bool) (at time.Time, found bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	row := 0
	for _, b := range p.beats {
		switch {
		case !b.done: // later probes are judged after this one
			return at, false, p.err
		case b.sent.Before(since) || b.passed == off:
			row = 0
			continue
		case row == 0:
			at = b.sent
		}
		if row++; row == streak {
			return at, true, p.err
		}
	}
	return at, false, p.err
}
