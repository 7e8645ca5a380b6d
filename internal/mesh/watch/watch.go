// Package watch measures a mesh round after round with light probes, and says when a place turns
// slow and when it recovers. A round is a mesh with small numbers (mesh.RoundPlan); what looks
// slow in it is measured again in the same round, and only what that confirms is an alarm. The
// package makes no nodes and knows no arena. Next: watch.go, then state.go and metrics.go.
package watch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cnibench/cnibench/internal/mesh"
	"github.com/cnibench/cnibench/internal/mesh/measure"
)

// Options say how a network is watched and who hears of it. All functions may be nil.
type Options struct {
	Every     time.Duration // from one round to the next
	Bandwidth bool          // send bursts, too: once an hour, and while a place has little goodput
	Limits    mesh.Limits   // of the bursts
	Seed      uint64
	Rounds    int // then the watch ends; 0: when the context does

	Metrics *Metrics
	Event   func(Event)      // a place has changed
	Log     func(string)     // what a person may want to know besides
	Plan    func(*mesh.Plan) // a round is about to begin
}

// burstsEvery is how often bursts are sent while no place has little goodput.
const burstsEvery = time.Hour

// Run watches until ctx ends. now returns the nodes that can be measured now; nodes that join or
// leave are no alarm. An endpoint stays the same value while the pod is the same.
func Run(ctx context.Context, now func(context.Context) (measure.Network, error), o Options) error {
	if o.Log == nil {
		o.Log = func(string) {}
	}
	agents := measure.NewAgents(ctx)
	defer agents.Close()
	var s State
	var burst time.Time
	random := rand.New(rand.NewPCG(o.Seed, 0x7761746368))
	for round := 0; o.Rounds == 0 || round < o.Rounds; round++ {
		began := time.Now()
		net, err := now(ctx)
		if err == nil {
			plan := mesh.RoundPlan(net.Nodes, o.Every, random.Uint64())
			plan.Limits, plan.Round.Open = o.Limits, s.Open()
			if o.Bandwidth && (burst.IsZero() || began.Sub(burst) >= burstsEvery || s.has(mesh.Goodput)) {
				burst, plan.Matchings = began, 4
			}
			if o.Plan != nil {
				o.Plan(&plan)
			}
			err = s.round(ctx, net, plan, agents, &o)
		}
		if err != nil && ctx.Err() == nil {
			o.Log(fmt.Sprintf("round %d gave nothing: %v", round+1, err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(0, o.Every-time.Since(began))):
		}
	}
	return nil
}

// round measures and judges one round.
func (s *State) round(ctx context.Context, net measure.Network, plan mesh.Plan, agents *measure.Agents, o *Options) error {
	var figures []mesh.Figure
	r, err := measure.Run(ctx, net, plan, measure.Options{
		Agents: agents,
		Seal: func(list []mesh.Figure) error {
			figures = append(figures, list...)
			o.Metrics.Saw(plan.Nodes, list)
			return nil
		},
		Progress: func(done float64, text string) {
			if done < 0 {
				o.Log(text)
			}
		},
	})
	if err != nil {
		return err
	}
	events := s.Update(&plan, figures, r, time.Now())
	o.Metrics.Ended(&plan, figures, r, s.Open(), events)
	for _, e := range events {
		if o.Event != nil {
			o.Event(e)
		}
	}
	return nil
}
