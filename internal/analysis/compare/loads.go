package compare

import (
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
)

// otherRate returns the rates of the step in two runs, each nil unless it is a share of a
// capacity that was found. differ says that both are, and are different rates: then the
// figures are those of different loads.
func otherRate(old, now *result.Run, step string) (a, b any, differ bool) {
	rate := func(r *result.Run) any {
		i := slices.IndexFunc(r.Plan.Steps, func(s result.Step) bool { return s.ID == step })
		if i < 0 {
			return nil
		}
		load, err := r.Plan.Steps[i].Load()
		if _, found := r.Plan.Capacity[load]; err != nil || !found {
			return nil
		}
		return r.Plan.Steps[i].Params[result.RateParam]
	}
	a, b = rate(old), rate(now)
	return a, b, a != nil && b != nil && fmt.Sprint(a) != fmt.Sprint(b)
}

// leaveOut sets p.excludedSteps and p.whyLeftOut: the steps that are not compared, because some
// run loaded them at another rate than the first old run.
func (p *pairing) leaveOut() {
	p.excludedSteps = map[string]bool{}
	runs := []*result.Run{p.now.Run}
	for _, e := range slices.Concat(p.repeatsOld, p.repeatsNew) {
		runs = append(runs, e.Run)
	}
	for _, step := range p.old.Run.Plan.Steps {
		for _, r := range runs {
			if a, b, differ := otherRate(p.old.Run, r, step.ID); differ {
				p.excludedSteps[step.ID] = true
				p.whyLeftOut = append(p.whyLeftOut, fmt.Sprintf("%s is not compared: the runs loaded it at %v/s and at %v/s, a share each of what the baseline reached then; "+
					"a run with --rates-from and the old run's directory, or runs with --rates given, can be compared", step.ID, a, b))
				break
			}
		}
	}
}
