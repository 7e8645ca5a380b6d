package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
)

// otherRate returns the rates of the step in two runs, if each run took a share of the
// capacity that it found and the shares differ: figures of the two are of different loads.
func otherRate(old, now *result.Run, step string) (a, b any, differ bool) {
	rate := func(r *result.Run) any {
		i := slices.IndexFunc(r.Plan.Steps, func(s result.Step) bool { return s.ID == step })
		if i < 0 {
			return nil
		}
		s := r.Plan.Steps[i]
		for load := range r.Plan.Capacity { // workload, path and parameters
			if strings.HasPrefix(load, s.Workload+" "+s.Path+" ") {
				return s.Params["rate"]
			}
		}
		return nil
	}
	a, b = rate(old), rate(now)
	return a, b, a != nil && b != nil && fmt.Sprint(a) != fmt.Sprint(b)
}

// runs are those of both sides, the first old one before the others.
func (p *pairing) runs() []*result.Run {
	list := []*result.Run{p.old.Run, p.now.Run}
	for _, e := range slices.Concat(p.moreOld, p.moreNew) {
		list = append(list, e.Run)
	}
	return list
}

// loaded says that all runs loaded the step at one rate.
func (p *pairing) loaded(step string) bool {
	return !slices.ContainsFunc(p.runs(), func(r *result.Run) bool {
		_, _, differ := otherRate(p.old.Run, r, step)
		return differ
	})
}

// leftOut says which steps are not compared for their rates.
func (p *pairing) leftOut() []string {
	var notes []string
	for _, step := range p.old.Run.Plan.Steps {
		for _, r := range p.runs() {
			if a, b, differ := otherRate(p.old.Run, r, step.ID); differ {
				notes = append(notes, fmt.Sprintf("%s is not compared: the runs loaded it at %v/s and at %v/s, a share each of what the baseline reached then; "+
					"--set %s.rate=%v, or --rates given, makes runs that can be compared", step.ID, a, b, step.ID, a))
				break
			}
		}
	}
	return notes
}
