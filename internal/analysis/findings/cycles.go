package findings

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// disturbedCycles says how many cycles of each step were left out, and in how many rounds
// all cycles were used because nearly all were disturbed.
func disturbedCycles(e *evidence) []analysis.Finding {
	type round struct {
		group analysis.ComparableSet
		step  string
		round int
	}
	// The contender with the most cycles of a round has them all: contenders take turns in
	// one block, or in several beside the baseline.
	fullest := map[round]*result.Sample{}
	for i := range e.Samples {
		s := &e.Samples[i]
		at := round{analysis.SetOf(s), s.Step, s.Round}
		if s.Slices != nil && (fullest[at] == nil || s.Slices.CountCycles() > fullest[at].Slices.CountCycles()) {
			fullest[at] = s
		}
	}
	excluded, all, used := map[string]int{}, map[string]int{}, map[string]int{} // by step
	for at, s := range fullest {
		excluded[at.step] += len(s.Slices.Disturbed)
		all[at.step] += s.Slices.CountCycles()
		if slices.ContainsFunc(s.Notes, func(n result.Reason) bool { return n.Code == "disturbed_cycles" }) {
			used[at.step]++
		}
	}
	var list []analysis.Finding
	for _, step := range e.Run.Plan.Steps {
		if n := excluded[step.ID]; n > 0 && used[step.ID] == 0 {
			list = append(list, analysis.Finding{Severity: analysis.Info, Step: step.ID, Text: fmt.Sprintf(
				"%d of %d cycles were disturbed and left out, for all contenders", n, all[step.ID])})
		}
		if n := used[step.ID]; n > 0 {
			list = append(list, analysis.Finding{Severity: analysis.Warn, Step: step.ID, Text: fmt.Sprintf(
				"in %s nearly all cycles were disturbed, and all were used", unit.Plural(n, "round"))})
		}
	}
	return list
}

// maxOthersCPU is the CPU time (CPU-seconds per second) that the contenders of a step may
// use together while others have their slices.
const maxOthersCPU = 0.1

// busyIdleContenders finds steps whose contenders worked while others had their slices.
func busyIdleContenders(e *evidence) []analysis.Finding {
	byStep := map[string]map[string]float64{} // medians by contender; contenders of several groups are up at the same time
	for _, at := range e.Keys {
		if at.Metric != result.CPUStanding {
			continue
		}
		if byStep[at.Step] == nil {
			byStep[at.Step] = map[string]float64{}
		}
		for contender, rounds := range e.Figures[at] {
			byStep[at.Step][e.GroupPrefix(at.ComparableSet)+contender] = stat.Median(rounds.Values())
		}
	}
	var list []analysis.Finding
	for _, step := range slices.SortedFunc(maps.Keys(byStep), e.CompareSteps) {
		sum, busiest := 0.0, ""
		for _, contender := range slices.Sorted(maps.Keys(byStep[step])) {
			used := byStep[step][contender]
			if sum += used; busiest == "" || used > byStep[step][busiest] {
				busiest = contender
			}
		}
		if sum > maxOthersCPU {
			list = append(list, analysis.Finding{Step: step, Text: fmt.Sprintf(
				"%s together while others were measured, most of it by %s: %s",
				unit.Format(sum, "CPU-s/s"), busiest, unit.Format(byStep[step][busiest], "CPU-s/s"))})
		}
	}
	return list
}
