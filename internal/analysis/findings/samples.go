package findings

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// This file has the rules about samples: faults of files, reasons, gaps and notes.

// maxListed is the largest number of names in a text; further ones are only counted.
const maxListed = 5

// maxFaults is the largest number of faults of files that are listed, because every line
// of a long file can be bad.
const maxFaults = 1000

func corruptSamples(e *evidence) []analysis.Finding {
	var list []analysis.Finding
	for i, f := range e.Faults {
		if i == maxFaults {
			return append(list, analysis.Finding{Text: fmt.Sprintf("%d further faults are not listed", len(e.Faults)-i)})
		}
		where := f.File
		if f.Line > 0 {
			where += " line " + strconv.Itoa(f.Line)
		}
		list = append(list, analysis.Finding{Text: where + ": " + f.Text, Next: nextOfFault(e, f)})
	}
	return list
}

// nextOfFault returns the next step. An imported run can't be measured again, but if only
// the copy is damaged, the source can be imported again.
func nextOfFault(e *evidence, f result.Fault) string {
	switch {
	case e.Run.Arena != imported:
		return f.Next
	case f.Code != "":
		return importedNext
	}
	return "cnibench import # again: this copy of the source is damaged"
}

// findingKey is what the samples of one finding have in common.
type findingKey struct {
	analysis.ComparableSet
	Contender, Step, Code string
}

// keyOf returns the findingKey of a sample for a code, which may be "".
func keyOf(s *result.Sample, code string) findingKey {
	return findingKey{analysis.SetOf(s), s.Contender, s.Step, code}
}

// sampleGroup is what the samples of a findingKey say.
type sampleGroup struct {
	findingKey
	texts map[int]string // by round
}

// groupSamples collects the texts of the reasons that reasonsOf returns for each sample, in
// groups by the findingKey that where returns. The groups are ordered by step and contender.
func groupSamples(e *evidence, reasonsOf func(s *result.Sample) []result.Reason, where func(s *result.Sample, code string) findingKey) []sampleGroup {
	index := map[findingKey]int{}
	var list []sampleGroup
	for i := range e.Samples {
		s := &e.Samples[i]
		for _, reason := range reasonsOf(s) {
			at := where(s, reason.Code)
			group, known := index[at]
			if !known {
				group = len(list)
				index[at] = group
				list = append(list, sampleGroup{at, map[int]string{}})
			}
			texts := list[group].texts
			switch text, has := texts[s.Round]; {
			case !has:
				texts[s.Round] = reason.Text
			case !strings.Contains(text, reason.Text) && !strings.Contains(reason.Text, text): // else it says nothing new
				texts[s.Round] = text + ", " + reason.Text
			}
		}
	}
	slices.SortStableFunc(list, func(a, b sampleGroup) int { return e.compareKeys(a.findingKey, b.findingKey) })
	return list
}

// compareKeys compares by step, contender, comparable set and code.
func (e *evidence) compareKeys(a, b findingKey) int {
	return cmp.Or(e.CompareSteps(a.Step, b.Step), e.CompareContenders(a.Contender, b.Contender),
		cmp.Compare(a.Kernel, b.Kernel), cmp.Compare(a.Underlay, b.Underlay), cmp.Compare(a.Code, b.Code))
}

// toFinding makes a finding of the texts: head, in how many rounds, and the text. If the
// rounds' texts differ, it is that of the first round.
func (g sampleGroup) toFinding(e *evidence, head string) analysis.Finding {
	f := analysis.Finding{Contender: g.Contender, Step: g.Step}
	rounds := analysis.SortedKeys(g.texts)
	text, differ := g.texts[rounds[0]], false
	for _, round := range rounds[1:] {
		differ = differ || g.texts[round] != text
	}
	if len(rounds) == 1 {
		f.Round = rounds[0]
	}
	if differ {
		text = fmt.Sprintf("round %d: %s", rounds[0], text)
	}
	f.Text = fmt.Sprintf("%s%s in %s: %s", e.GroupPrefix(g.ComparableSet), head, countOf(rounds, e.Rounds()), text)
	return f
}

// contenderFailed makes a single finding of a failed set-up and the samples that are
// invalid because of it.
func contenderFailed(e *evidence) []analysis.Finding {
	var list []analysis.Finding
	for _, g := range groupSamples(e, func(s *result.Sample) []result.Reason {
		return only(s.Reasons, func(code string) bool { return code == setupFailed })
	}, func(s *result.Sample, _ string) findingKey {
		return findingKey{ComparableSet: analysis.SetOf(s), Contender: s.Contender}
	}) {
		f := g.toFinding(e, "did not come up")
		f.Excluded = true
		list = append(list, f)
	}
	return list
}

// only returns the reasons whose codes are wanted.
func only(reasons []result.Reason, want func(code string) bool) []result.Reason {
	var list []result.Reason
	for _, r := range reasons {
		if want(r.Code) {
			list = append(list, r)
		}
	}
	return list
}

// orUnknown returns the reasons, or a general reason if there are none.
func orUnknown(reasons []result.Reason) []result.Reason {
	if len(reasons) == 0 {
		return []result.Reason{{Code: "invalid_sample", Text: "the sample says no reason"}}
	}
	return reasons
}

// invalidSamples makes a finding of each reason for which samples are left out, but of failed
// set-ups, which contenderFailed finds. Its kind is the one that the reason's code stands for,
// or resultMissing if there is none.
func invalidSamples(e *evidence) []analysis.Finding {
	var list []analysis.Finding
	for _, g := range groupSamples(e, func(s *result.Sample) []result.Reason {
		if s.Verdict == result.Valid {
			return nil
		}
		return only(orUnknown(s.Reasons), func(code string) bool { return code != setupFailed })
	}, keyOf) {
		f := g.toFinding(e, "left out")
		f.Excluded = true
		f.Code = resultMissing
		if kind, known := KindOf(g.Code); known {
			f.Code = kind.Code
		}
		f.Severity = analysis.Error
		list = append(list, f)
	}
	return list
}

// noValidSample finds contenders that have samples of a step and no valid one among them.
func noValidSample(e *evidence) []analysis.Finding {
	taken, valid, notUp := map[findingKey]int{}, map[findingKey]int{}, map[findingKey]int{}
	var order []findingKey
	for i := range e.Samples {
		s := &e.Samples[i]
		at := keyOf(s, "")
		if taken[at] == 0 {
			order = append(order, at)
		}
		taken[at]++
		switch {
		case s.Verdict == result.Valid:
			valid[at]++
		case len(only(s.Reasons, func(code string) bool { return code == setupFailed })) > 0:
			notUp[at]++
		}
	}
	slices.SortStableFunc(order, func(a, b findingKey) int {
		return cmp.Or(e.CompareSteps(a.Step, b.Step), e.CompareContenders(a.Contender, b.Contender))
	})
	var list []analysis.Finding
	if len(e.Valid) == 0 && len(e.Samples) > 0 {
		list = append(list, analysis.Finding{Text: fmt.Sprintf("none of the run's %d samples is valid: there are no figures", len(e.Samples))})
	}
	for _, at := range order {
		if valid[at] == 0 && notUp[at] < taken[at] { // if it never came up, contender_failed says so
			list = append(list, analysis.Finding{Contender: at.Contender, Step: at.Step, Excluded: true, Consequence: true,
				Text: fmt.Sprintf("%sno valid sample of %d", e.GroupPrefix(at.ComparableSet), taken[at])})
		}
	}
	return list
}

// neverTaken returns the steps at which an entry of the plan has no sample.
func neverTaken(e *evidence, entry result.Entry) []string {
	var steps []string
	for _, step := range e.Run.Plan.Steps {
		if !e.Measured[result.Key{Contender: entry.ID, Underlay: entry.Underlay, Step: step.ID}] {
			steps = append(steps, step.ID)
		}
	}
	return steps
}

// notMeasured finds steps that a contender of an unpaired run did not take. The plan of such
// a run is made from its samples, and has every step for every contender, measured or not.
func notMeasured(e *evidence) []analysis.Finding {
	if !e.Unpaired() {
		return nil
	}
	var list []analysis.Finding
	for _, entry := range e.Run.Plan.Contenders {
		steps := neverTaken(e, entry)
		if len(steps) == 0 || len(steps) == len(e.Run.Plan.Steps) {
			continue
		}
		text := "not measured at " + analysis.AndList(steps)
		if entry.ID == e.Run.Baseline {
			text += ratioSteps(e, steps)
		}
		list = append(list, analysis.Finding{Severity: analysis.Info, Contender: entry.ID, Text: text})
	}
	return list
}

// ratioSteps says what ratios there are at steps that the baseline did not take: those to
// the baseline's step with the same load from pod to pod.
func ratioSteps(e *evidence, steps []string) string {
	var pairs []string
	for _, step := range steps {
		if direct := e.Direct(step); direct != "" {
			pairs = append(pairs, step+" to "+direct)
		}
	}
	if len(pairs) == 0 {
		return ": there are no ratios"
	}
	return ": ratios there are to its figures of the same load from pod to pod (" + analysis.AndList(pairs) + ")"
}

// incompleteRun counts the planned samples that were never taken.
func incompleteRun(e *evidence) []analysis.Finding {
	sealed := map[result.Key]bool{}
	for i := range e.Samples {
		sealed[e.Samples[i].Key()] = true
	}
	plan := &e.Run.Plan
	planned := plan.Rounds * (len(plan.Contenders)*len(plan.Steps) - gaps(plan))
	lacking := planned
	for key := range sealed { // those outside of the plan do not count
		if key.Round >= 1 && key.Round <= plan.Rounds &&
			slices.Contains(plan.Contenders, result.Entry{ID: key.Contender, Underlay: key.Underlay}) &&
			slices.ContainsFunc(plan.Steps, func(s result.Step) bool { return s.ID == key.Step }) &&
			plan.Takes(key.Contender, key.Step) {
			lacking--
		}
	}
	if e.Unpaired() { // steps that were never taken are in the finding not_measured
		for _, entry := range plan.Contenders {
			never := plan.Rounds * len(neverTaken(e, entry))
			lacking, planned = lacking-never, planned-never
		}
	}
	if lacking <= 0 {
		return nil
	}
	return []analysis.Finding{{Text: fmt.Sprintf("%d of %d planned samples are missing: %s", lacking, planned, firstMissing(e, sealed, lacking))}}
}

// gaps returns how many samples of each round the plan leaves out: for a gap, one for every
// underlay of its contender.
func gaps(plan *result.Plan) int {
	n := 0
	for _, gap := range plan.Gaps {
		if !slices.ContainsFunc(plan.Steps, func(s result.Step) bool { return s.ID == gap.Step }) {
			continue
		}
		for _, entry := range plan.Contenders {
			if entry.ID == gap.Contender {
				n++
			}
		}
	}
	return n
}

// firstMissing names the first planned samples that are not sealed, of lacking ones in all. It
// stops after maxListed, because a plan can be very large.
func firstMissing(e *evidence, sealed map[result.Key]bool, lacking int) string {
	var names []string
	plan := &e.Run.Plan
	var planned []result.Key // of every round
	for _, entry := range plan.Contenders {
		for _, step := range plan.Steps {
			key := result.Key{Contender: entry.ID, Underlay: entry.Underlay, Step: step.ID}
			if plan.Takes(entry.ID, step.ID) && (!e.Unpaired() || e.Measured[key]) {
				planned = append(planned, key)
			}
		}
	}
	for round := 1; round <= plan.Rounds; round++ {
		for _, key := range planned {
			key.Round = round
			if sealed[key] {
				continue
			}
			if len(names) == maxListed {
				return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), lacking-maxListed)
			}
			names = append(names, fmt.Sprintf("%s %s round %d", key.Contender, key.Step, round))
		}
	}
	return strings.Join(names, ", ")
}

// notes makes a finding of each code of notes, with the text of its first note and the number
// of samples that have one.
func notes(e *evidence) []analysis.Finding {
	type note struct {
		reason  result.Reason // the first
		samples int
		texts   int // how many different ones
		steps   []string
	}
	var order []string
	byCode := map[string]*note{}
	seen := map[result.Reason]bool{}
	for i := range e.Samples {
		s := &e.Samples[i]
		for _, reason := range s.Notes {
			n := byCode[reason.Code]
			if n == nil {
				n = &note{reason: reason}
				byCode[reason.Code] = n
				order = append(order, reason.Code)
			}
			n.samples++
			if !seen[reason] {
				seen[reason] = true
				n.texts++
			}
			if !slices.Contains(n.steps, s.Step) {
				n.steps = append(n.steps, s.Step)
			}
		}
	}
	var list []analysis.Finding
	for _, code := range order {
		n := byCode[code]
		slices.SortFunc(n.steps, e.CompareSteps)
		f := analysis.Finding{Code: code, Note: true, Text: fmt.Sprintf("%s (%s of %s)", n.reason.Text, unit.Plural(n.samples, "sample"), analysis.AndList(n.steps))}
		if n.texts > 1 {
			f.Text = fmt.Sprintf("%s; one of %d such notes (%s of %s)", n.reason.Text, n.texts, unit.Plural(n.samples, "sample"), analysis.AndList(n.steps))
		}
		if len(n.steps) == 1 {
			f.Step = n.steps[0]
		}
		list = append(list, f)
	}
	return list
}

// unknownMetric finds metrics that the catalogue of metrics lacks.
func unknownMetric(e *evidence) []analysis.Finding {
	if len(e.Unknown) == 0 {
		return nil
	}
	slices.Sort(e.Unknown)
	return []analysis.Finding{{Severity: analysis.Info, Text: "metrics that are not shown: " + strings.Join(e.Unknown, ", ")}}
}
