package check

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/result"
)

// Runner brings contenders up and checks them.
type Runner struct {
	Arena    arena.Arena
	Exe      string            // this program, as the endpoints start it for agents
	Progress func(text string) // what is going on now
}

// Run brings the contender up once, on the given variant of the underlay, and
// runs the checks on it. What goes wrong is in the results; an error is that
// ctx ended or that the contender left something behind.
func (r *Runner) Run(ctx context.Context, c *contender.Contender, variant string, checks []Check) (results []Result, err error) {
	r.Progress(c.ID)
	net, upErr := r.Arena.Up(ctx, c, variant)
	if upErr != nil {
		upErr = fmt.Errorf("%s does not come up: %w", c.ID, upErr)
	} else {
		defer func() { err = errors.Join(err, net.Down(context.WithoutCancel(ctx))) }()
	}
	s := &Subject{Contender: c, Network: net, Exe: r.Exe}
	defer s.Close()
	for _, check := range checks {
		if err := ctx.Err(); err != nil {
			return results, err
		}
		name := check.Info().Name
		res, runErr := Result{}, upErr
		if upErr == nil {
			res, runErr = check.Run(ctx, s)
		}
		res.Check, res.Contender, res.Nodes = name, c.ID, []string{}
		if upErr == nil {
			for _, n := range net.Nodes()[:min(2, len(net.Nodes()))] { // checks ask two
				res.Nodes = append(res.Nodes, n.Name())
			}
		}
		if res.Cases == nil {
			res.Cases = []Case{} // as JSON an empty list
		}
		if runErr != nil {
			if ctx.Err() != nil {
				return results, ctx.Err()
			}
			if u := arena.AsUnsupported(runErr); u != nil && upErr == nil { // a path that is not there
				res.note(Case{Name: "network", Verdict: Skip, Text: u.Reason, Next: u.Remedy})
			} else {
				res.Error = runErr.Error()
				res.set(res.key("run"), "skip: "+res.Error)
			}
		}
		results = append(results, res)
	}
	return results, nil
}

// Environment returns the results as keys of a run's environment.
func Environment(results []Result) result.Environment {
	env := result.Environment{}
	for _, r := range results {
		maps.Copy(env, r.Environment)
	}
	return env
}
