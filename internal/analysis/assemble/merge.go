package assemble

import (
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
)

// Merge adds the report of a part to the report of the whole run; dir is the part's
// directory. No figure changes: every figure says to which part it belongs, and figures of
// different parts are never compared. Unsupported lists what neither the run nor the part
// could run.
func Merge(whole, part *analysis.Report, dir string) *analysis.Report {
	p := analysis.Part{
		Dir: dir, Arena: part.Run.Arena, Kernels: kernels(part), Plan: part.Plan, Measured: part.Measured,
		Emulated: part.Run.Environment[result.EmulatedKey] == "true", Environment: part.Run.Environment,
	}
	m := *whole
	m.Parts = append(slices.Clone(whole.Parts), p)
	m.Results = slices.Concat(whole.Results, analysis.Changed(part.Results, func(r *analysis.Result) { r.Part = dir }))
	m.Findings = slices.Concat(whole.Findings, findingsOf(part, p))
	m.Unsupported = neither(whole, part)
	m.Efficiency = slices.Concat(whole.Efficiency, analysis.Changed(part.Efficiency, func(e *analysis.Efficiency) { e.Part = dir }))
	m.Curves = slices.Concat(whole.Curves, analysis.Changed(part.Curves, func(c *analysis.Curve) { c.Part = dir }))
	m.Traces = slices.Concat(whole.Traces, analysis.Changed(part.Traces, func(t *analysis.Trace) { t.Part = dir }))
	m.Marks = slices.Concat(whole.Marks, analysis.Changed(part.Marks, func(k *analysis.Mark) { k.Part = dir }))
	m.Contenders = slices.Clone(whole.Contenders)
	for _, c := range part.Contenders {
		if !slices.ContainsFunc(m.Contenders, func(o result.ContenderInfo) bool { return o.ID == c.ID }) {
			m.Contenders = append(m.Contenders, c)
		}
	}
	m.Capabilities = mergeCapabilities(whole.Capabilities, part.Capabilities, &whole.Plan)
	m.Recommendation = MergeRecommendation(whole.Recommendation, part.Recommendation, dir, &part.Plan)
	m.Advice = analysis.Changed(whole.Advice, func(a *analysis.Advice) {
		for _, p := range part.Advice {
			if p.Scenario == a.Scenario {
				a.Recommendation = MergeRecommendation(a.Recommendation, p.Recommendation, dir, &part.Plan)
			}
		}
	})
	return &m
}

// plans says whether the contender is in the plan.
func plans(plan *result.Plan, contender string) bool {
	return slices.ContainsFunc(plan.Contenders, func(e result.Entry) bool { return e.ID == contender })
}

// mergeCapabilities returns the capabilities of the whole run, with those that the part's
// checks found for contenders that are not in the whole run's plan.
func mergeCapabilities(whole, part []analysis.Capability, plan *result.Plan) []analysis.Capability {
	list := slices.Clone(whole)
	for _, found := range part {
		if found.Source == "catalogue" || plans(plan, found.Contender) {
			continue
		}
		i := slices.IndexFunc(list, func(c analysis.Capability) bool { return c.Contender == found.Contender && c.Name == found.Name })
		if i < 0 {
			list = append(list, found)
			continue
		}
		list[i] = found
	}
	return list
}

// MergeRecommendation adds the recommendation of a part to that of the whole run; dir and
// plan are the part's. The part's lists go to Apart. For contenders of the part, Lost and
// Unknown are those of the part. The result is nil if neither has a recommendation.
func MergeRecommendation(whole, part *analysis.Recommendation, dir string, plan *result.Plan) *analysis.Recommendation {
	ofPart := func(l analysis.Loss) bool { return plans(plan, l.Contender) }
	switch {
	case whole == nil && part == nil:
		return nil
	case part == nil:
		m := *whole
		m.Unknown = analysis.Changed(whole.Unknown, func(l *analysis.Loss) {
			if ofPart(*l) {
				l.Reason = "no figure in " + dir + " beside the baseline's; `cnibench report` says why"
			}
		})
		return &m
	}
	lost, unknown := slices.Clone(part.Lost), slices.Clone(part.Unknown)
	lists := analysis.Changed(append([]analysis.Recommendation{*part}, part.Apart...), func(r *analysis.Recommendation) {
		r.Part = dir
		r.Apart, r.Lost, r.Unknown = nil, []analysis.Loss{}, []analysis.Loss{}
	})
	if whole == nil {
		first := lists[0]
		first.Apart, first.Lost, first.Unknown = lists[1:], lost, unknown
		return &first
	}
	m := *whole
	m.Apart = slices.Concat(whole.Apart, lists)
	join := func(own, parts []analysis.Loss) []analysis.Loss {
		return append(slices.DeleteFunc(slices.Clone(own), ofPart), slices.DeleteFunc(parts, func(l analysis.Loss) bool { return !ofPart(l) })...)
	}
	m.Lost, m.Unknown = join(whole.Lost, lost), join(whole.Unknown, unknown)
	return &m
}

// kernels returns the kernels of the report's results.
func kernels(r *analysis.Report) []string {
	list := []string{}
	for _, res := range r.Results {
		if !slices.Contains(list, res.Kernel) {
			list = append(list, res.Kernel)
		}
	}
	return list
}

// findingsOf returns the part's findings. Their texts begin with the part's arena and kernel.
func findingsOf(part *analysis.Report, p analysis.Part) []analysis.Finding {
	where := p.Arena
	if len(p.Kernels) == 1 {
		where += ", kernel " + p.Kernels[0]
	}
	return analysis.Changed(part.Findings, func(f *analysis.Finding) {
		f.Part, f.Text = p.Dir, fmt.Sprintf("%s: %s", where, f.Text)
	})
}

// neither returns what neither the whole run nor the part could run. If both give a reason,
// the part's counts, because it is about the newer kernel.
func neither(whole, part *analysis.Report) []result.Unsupported {
	list := []result.Unsupported{}
	for _, u := range whole.Unsupported {
		same := func(o result.Unsupported) bool { return o.Contender == u.Contender && o.Step == "" }
		if u.Step == "" && (slices.ContainsFunc(part.Unsupported, same) ||
			slices.ContainsFunc(part.Contenders, func(c result.ContenderInfo) bool { return c.ID == u.Contender })) {
			continue
		}
		list = append(list, u)
	}
	for _, u := range part.Unsupported {
		if !slices.ContainsFunc(list, func(o result.Unsupported) bool { return o.Contender == u.Contender && o.Step == u.Step }) {
			list = append(list, u)
		}
	}
	return list
}
