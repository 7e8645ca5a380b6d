package run

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/workload"
)

// takeRates gives the plan's steps that take a share of a capacity the rates that an
// earlier run gave them, and the plan that run's capacities, so that the two runs can be
// compared. It is wrong
// usage if no step takes a share, or if the earlier run has no rate for one of them.
func (f *Request) takeRates(plan *result.Plan) error {
	if f.RatesFrom == "" {
		return nil
	}
	rec, err := result.Load(f.RatesFrom)
	if err != nil {
		return fmt.Errorf("--rates-from: %w", err)
	}
	earlier := &rec.Run.Plan
	plan.Capacity = map[string]float64{}
	for i := range plan.Steps {
		step := &plan.Steps[i]
		if _, share := workload.Share(step.Params[result.RateParam]); !share {
			continue
		}
		load, err := step.Load()
		if err != nil {
			return err
		}
		at := slices.IndexFunc(earlier.Steps, func(s result.Step) bool {
			other, err := s.Load()
			return err == nil && s.ID == step.ID && other == load
		})
		capacity, found := earlier.Capacity[load]
		if at < 0 || !found {
			return exit.Usage("--rates-from %s: that run found no rate for step %s with the same parameters; choose other --steps, or leave --rates-from out", f.RatesFrom, step.ID)
		}
		step.Params = maps.Clone(step.Params)
		step.Params[result.RateParam] = earlier.Steps[at].Params[result.RateParam]
		plan.Capacity[load] = capacity
	}
	if len(plan.Capacity) == 0 {
		return exit.Usage("--rates-from %s: no step of the plan takes a share of a capacity; leave --rates-from out", f.RatesFrom)
	}
	plan.RatesFrom = rec.Run.ID
	return nil
}
