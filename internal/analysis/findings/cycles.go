package findings

import (
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// disturbedCycles tells how many cycles of each step were left out, and in how many
// rounds disturbed ones were used for want of others.
func disturbedCycles(e *evidence) []analysis.Finding {
	type round struct {
		group analysis.Group
		step  string
		round int
	}
	away, all, used := map[string]int{}, map[string]int{}, map[string]int{}
	seen := map[round]bool{}
	for i := range e.Samples {
		s := &e.Samples[i]
		at := round{analysis.GroupOf(s), s.Step, s.Round}
		if s.Slices == nil || seen[at] {
			continue // all contenders of a round have the same cycles
		}
		seen[at] = true
		away[s.Step] += len(s.Slices.Disturbed)
		all[s.Step] += s.Slices.Tried()
		if slices.ContainsFunc(s.Notes, func(n result.Reason) bool { return n.Code == "disturbed_cycles" }) {
			used[s.Step]++
		}
	}
	var list []analysis.Finding
	for _, step := range e.Run.Plan.Steps {
		if n := away[step.ID]; n > 0 {
			list = append(list, analysis.Finding{Step: step.ID, Text: fmt.Sprintf(
				"%d of %d cycles were disturbed by the hypervisor or other processes and left out, for all contenders", n, all[step.ID])})
		}
		if n := used[step.ID]; n > 0 {
			list = append(list, analysis.Finding{Severity: analysis.Warn, Step: step.ID, Text: fmt.Sprintf(
				"in %s so many cycles were disturbed by the hypervisor or other processes that all were used", unit.Plural(n, "round"))})
		}
	}
	return list
}
