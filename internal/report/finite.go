package report

import (
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/result"
)

// finite returns a copy of r without figures that are NaN or infinite, and with empty lists
// instead of nil. A finding names each figure that it left out. No format can hold a NaN,
// and a single bad figure must not make the whole report fail.
func finite(r *analysis.Report) *analysis.Report {
	out := *r
	out.Results = make([]analysis.Result, 0, len(r.Results))
	out.Findings = append([]analysis.Finding{}, r.Findings...)
	out.Unsupported = append([]result.Unsupported{}, r.Unsupported...)
	if out.Run.Environment == nil {
		out.Run.Environment = result.Environment{}
	}
	out.Efficiency = slices.DeleteFunc(slices.Clone(r.Efficiency), func(e analysis.Efficiency) bool { return !finiteEfficiency(&e) })
	for _, res := range r.Results {
		keep, lost := finiteResult(res)
		for _, what := range lost {
			out.Findings = append(out.Findings, analysis.Finding{
				Severity: "error", Code: "not_a_number", Contender: res.Contender, Step: res.Step,
				Text: fmt.Sprintf("%s of %s is not a finite number and is left out", what, res.Metric),
				Next: "report this as a bug of cnibench, with the run directory",
			})
		}
		if keep != nil {
			out.Results = append(out.Results, *keep)
		}
	}
	return &out
}

// finiteResult returns res without its bad parts, or nil if nothing can be shown, and the
// names of the parts that it left out.
func finiteResult(res analysis.Result) (*analysis.Result, []string) {
	if !layout.IsFinite(res.Median) || !layout.IsFinite(res.Confidence) {
		return nil, []string{"the median"}
	}
	var lost []string
	if res.MDD != nil && !layout.IsFinite(*res.MDD) {
		res.MDD = nil
	}
	values := make([]float64, 0, len(res.Values))
	for _, v := range res.Values {
		if layout.IsFinite(v) {
			values = append(values, v)
		}
	}
	if len(values) < len(res.Values) {
		lost = append(lost, "a round's value")
	}
	res.Values = values
	if !layout.FiniteInterval(res.CI) {
		res.CI, lost = nil, append(lost, "the interval")
	}
	if c := res.VsBaseline; c != nil {
		switch {
		case !layout.IsFinite(c.Ratio):
			res.VsBaseline, lost = nil, append(lost, "the ratio to the baseline")
		case !layout.FiniteInterval(c.CI):
			res.VsBaseline, lost = &analysis.Comparison{Ratio: c.Ratio, P: c.P, Pairs: c.Pairs}, append(lost, "the ratio's interval")
		}
	}
	if c := res.VsBaseline; c != nil && c.P != nil && !layout.IsFinite(*c.P) {
		res.VsBaseline, lost = &analysis.Comparison{Ratio: c.Ratio, CI: c.CI, Pairs: c.Pairs}, append(lost, "the p-value")
	}
	return &res, lost
}

// finiteEfficiency says whether all figures are finite. If not, a figure of Results that
// they were computed from has a finding already.
func finiteEfficiency(e *analysis.Efficiency) bool {
	return finiteEstimate(&e.Goodput) && finiteEstimate(e.CPUPerGbit) && finiteEstimate(e.UserSystem) && finiteEstimate(e.MemoryOverhead) &&
		(e.Published == nil || layout.IsFinite(*e.Published))
}

func finiteEstimate(e *analysis.Estimate) bool {
	return e == nil || layout.IsFinite(e.Median) && layout.FiniteInterval(e.CI)
}
