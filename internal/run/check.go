package run

import (
	"context"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/check"
	"github.com/cnibench/cnibench/internal/result"
)

// checkPlan runs the checks of the list once on every contender of the plan,
// and returns what they found as keys of the run's environment.
func checkPlan(ctx context.Context, a arena.Arena, cat *Catalogue, exe, list string, plan *result.Plan, say func(string)) (result.Environment, error) {
	checks, err := check.Named(list)
	if err != nil {
		return nil, err
	}
	runner := &check.Runner{Arena: a, Exe: exe, Progress: say}
	var all []check.Result
	for _, entry := range plan.Contenders {
		c, err := cat.Contender(entry.ID)
		if err != nil {
			return nil, err
		}
		results, err := runner.Run(ctx, c, entry.Underlay, checks)
		if err != nil {
			return nil, err
		}
		all = append(all, results...)
	}
	return check.Environment(all), nil
}
