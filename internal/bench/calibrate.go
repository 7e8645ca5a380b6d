package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/workload"
)

// Calibrate turns rates that the plan gives as shares of a capacity into rates
// per second. It brings the baseline up once and finds the highest rate that the
// baseline sustains, for every workload and set of parameters in such a step. It
// writes the capacities and the rates into the run's plan. A plan without shares stays
// as it is. A step whose capacity is not found is left out of the plan, with the reason
// among the unsupported; it is an error if no step is left.
func (r *Runner) Calibrate(ctx context.Context, run *result.Run, baseline result.Entry) error {
	plan := &run.Plan
	var shares []*result.Step
	for i := range plan.Steps {
		if !plan.Takes(baseline.ID, plan.Steps[i].ID) {
			continue
		}
		if _, ok := workload.Share(plan.Steps[i].Params[result.RateParam]); ok {
			shares = append(shares, &plan.Steps[i])
		}
	}
	if len(shares) == 0 {
		return nil
	}
	r.Progress(Progress{Text: "finding the highest rate that the baseline sustains"})
	var steps []result.Step
	for _, s := range shares {
		steps = append(steps, *s)
	}
	site, _, err := r.setUp(ctx, baseline, steps)
	defer func() { r.noteLeft("calibration: "+entryName(baseline), site.close(ctx)) }()
	if err != nil {
		return fmt.Errorf("calibration: %w", err)
	}
	plan.Capacity = map[string]float64{}
	brief, err := briefly(shares)
	if err != nil {
		return err
	}
	failed := map[string]error{}
	for _, step := range shares {
		key, err := step.Load()
		if err != nil {
			return err
		}
		if failed[key] != nil {
			continue
		}
		if _, known := plan.Capacity[key]; !known {
			capacity, err := r.capacity(ctx, plan, site, step, brief[key])
			if err != nil {
				if ctx.Err() != nil {
					return fmt.Errorf("calibration of %s: %w", step.ID, err)
				}
				r.Log.Warn("no capacity: its steps are left out", "step", step.ID, "error", err)
				failed[key] = err
				continue
			}
			plan.Capacity[key] = capacity
			r.Progress(Progress{Text: fmt.Sprintf("%s sustains %.0f/s on %s", step.Workload, capacity, baseline.ID)})
		}
		share, _ := workload.Share(step.Params[result.RateParam])
		rate := share * plan.Capacity[key]
		if brief[key] {
			rate = rounded(rate)
		}
		step.Params = maps.Clone(step.Params)
		step.Params[result.RateParam] = offBeat(rate)
	}
	return leaveOut(run, baseline, failed)
}

// leaveOut takes the steps of loads without a capacity out of the plan.
func leaveOut(run *result.Run, baseline result.Entry, failed map[string]error) error {
	var steps []result.Step
	var causes []error
	for _, step := range run.Plan.Steps {
		key, err := step.Load()
		cause := failed[key]
		if _, share := workload.Share(step.Params[result.RateParam]); err != nil || !share || cause == nil {
			steps = append(steps, step)
			continue
		}
		causes = append(causes, fmt.Errorf("calibration of %s: %w", step.ID, cause))
		run.Unsupported = append(run.Unsupported, result.Unsupported{
			Contender: baseline.ID, Step: step.ID, Reason: fmt.Sprintf("no capacity to take a share of: %v", cause),
			Remedy: "stop other work on the machine and run again, or give rates per second",
		})
	}
	if len(steps) == 0 {
		return errors.Join(causes...)
	}
	run.Plan.Steps = steps
	return nil
}

// mostBrief is the largest share for which a guess of the capacity is good enough: so far
// below the capacity, a rate that is a tenth too high or too low changes nothing.
const mostBrief = 0.5

// briefly returns, by result.Step.Load, whether all shares of that load are small.
func briefly(shares []*result.Step) (map[string]bool, error) {
	brief := map[string]bool{}
	for _, step := range shares {
		key, err := step.Load()
		if err != nil {
			return nil, err
		}
		share, _ := workload.Share(step.Params[result.RateParam])
		small, seen := brief[key]
		brief[key] = share <= mostBrief && (small || !seen)
	}
	return brief, nil
}

// rounded returns the nearest of 1, 1.5, 2, 3, 5 and 7 times a power of ten. These steps are
// coarser than the error of a guessed capacity, so that runs on one machine mostly ask for
// the same rate and can be compared.
func rounded(rate float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(max(rate, 1))))
	best := power
	for _, step := range []float64{1, 1.5, 2, 3, 5, 7, 10} {
		if math.Abs(math.Log(step*power/rate)) < math.Abs(math.Log(best/rate)) {
			best = step * power
		}
	}
	return best
}

func (r *Runner) capacity(ctx context.Context, plan *result.Plan, site *site, step *result.Step, brief bool) (float64, error) {
	w, err := workload.Lookup(step.Workload)
	if err != nil {
		return 0, err
	}
	calibrated, ok := w.(workload.Calibrated)
	if !ok {
		return 0, fmt.Errorf("workload %s takes no share of a capacity; give its rate in requests per second", step.Workload)
	}
	params, err := workload.Complete(w.Info(), step.Params)
	if err != nil {
		return 0, err
	}
	pair, _, err := site.pair(ctx, w, params, *step)
	if err != nil {
		return 0, err
	}
	return calibrated.Capacity(ctx, &workload.Session{
		Client: pair.Client, Server: pair.Server, Target: pair.Target, Ports: pair.Ports, Params: params,
		Warmup: seconds(plan.Warmup), Duration: seconds(plan.Duration),
		Raw: workload.Discard{}, Begin: func() {}, End: func() {},
	}, brief)
}

// offBeat returns a whole rate near the given one that is no multiple of the
// kernel's tick rate (100, 250, 300 or 1000 Hz). Kernels that account CPU time by
// ticks would otherwise always sample a constant load at the same phase.
func offBeat(rate float64) float64 {
	whole := max(math.Floor(rate), 1)
	if math.Mod(whole, 10) == 0 || math.Mod(whole, 25) == 0 {
		whole += 3
	}
	return whole
}
