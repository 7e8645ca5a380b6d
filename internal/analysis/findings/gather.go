package findings

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// This file makes one finding of all that are of a kind, and orders them.

// maxExamples is the largest number of places that a finding describes.
const maxExamples = 3

// severities are in the order of reports.
var severities = []string{analysis.Error, analysis.Warn, analysis.Info}

// gather makes one finding of all of a kind; those of severity info stay apart, because they
// are facts and no faults. The finding has the gravest severity, and the text of at most
// maxExamples places, the gravest first. Findings are ordered by severity, then by how much
// they explain of what the report shows.
func gather(e *analysis.Evidence, all []analysis.Finding) []analysis.Finding {
	type key struct {
		code string
		info bool
	}
	all = withoutConsequences(all)
	size := sizes(e)
	var order []key
	byKind := map[key][]analysis.Finding{}
	for _, f := range all {
		k := key{f.Code, f.Severity == analysis.Info}
		if byKind[k] == nil {
			order = append(order, k)
		}
		byKind[k] = append(byKind[k], f)
	}
	list := []analysis.Finding{}
	explained := map[key]float64{}
	for _, k := range order {
		found := byKind[k]
		slices.SortStableFunc(found, func(a, b analysis.Finding) int {
			return cmp.Or(cmp.Compare(slices.Index(severities, a.Severity), slices.Index(severities, b.Severity)),
				cmp.Compare(size.of(b), size.of(a)))
		})
		for _, f := range found {
			explained[k] = max(explained[k], size.of(f))
		}
		list = append(list, joinFindings(found))
	}
	slices.SortStableFunc(list, func(a, b analysis.Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(severities, a.Severity), slices.Index(severities, b.Severity)),
			cmp.Compare(explained[key{b.Code, b.Severity == analysis.Info}], explained[key{a.Code, a.Severity == analysis.Info}]))
	})
	return list
}

// withoutConsequences leaves out that results are missing where another finding says why.
func withoutConsequences(all []analysis.Finding) []analysis.Finding {
	explained := func(f *analysis.Finding, by analysis.Finding) bool {
		return by.Step == f.Step && (by.Contender == f.Contender || by.Contender == "") &&
			(by.Code == "step_collapsed" || f.Consequence && by.Excluded && !by.Consequence)
	}
	return slices.DeleteFunc(slices.Clone(all), func(f analysis.Finding) bool {
		return f.Code == resultMissing && slices.ContainsFunc(all, func(by analysis.Finding) bool { return explained(&f, by) })
	})
}

// joinFindings makes one finding of several of a kind.
func joinFindings(found []analysis.Finding) analysis.Finding {
	f := found[0]
	if len(found) == 1 {
		return withPlaces(f, found)
	}
	var parts []string
	for _, one := range found[:min(len(found), maxExamples)] {
		f.Excluded = f.Excluded || one.Excluded
		where := one.Where()
		if where != "" {
			where += ": "
		}
		parts = append(parts, where+one.Text)
	}
	f.Count = len(found)
	f.Text = f.Title + ", " + strconv.Itoa(f.Count) + " times: " + strings.Join(parts, "; ")
	if rest := len(found) - maxExamples; rest > 0 {
		f.Text += fmt.Sprintf("; and %d more", rest)
	}
	for _, one := range found[1:] {
		f.Excluded = f.Excluded || one.Excluded
		if one.Contender != f.Contender {
			f.Contender = ""
		}
		if one.Step != f.Step {
			f.Step = ""
		}
		if one.Round != f.Round {
			f.Round = 0
		}
	}
	return withPlaces(f, found)
}

// withPlaces sets the contenders and steps of all findings.
func withPlaces(f analysis.Finding, found []analysis.Finding) analysis.Finding {
	for _, one := range found {
		if at := (analysis.FindingPlace{Contender: one.Contender, Step: one.Step}); (at != analysis.FindingPlace{}) && !slices.Contains(f.Places, at) {
			f.Places = append(f.Places, at)
		}
	}
	return f
}

// effects are the sizes of what a report shows, as logarithms of ratios.
type effects struct {
	ratios map[analysis.FindingPlace]float64 // largest distance of a main figure from the baseline's
	noise  map[string]float64                // by step, of a typical contender: half an interval's width
}

// networkCauses are the kinds that explain a difference between a contender and the
// baseline. The others, but for those about data, explain only the width of intervals.
var networkCauses = []string{"step_collapsed", "conntrack_full", "contender_failed", "retransmit_storm", "mtu_wrong", "udp_loss", "one_cpu_saturated", "rate_limited", "idle_contenders_busy", "better_than_baseline"}

// noiseCauses explain how wide intervals are.
var noiseCauses = []string{"machine_busy", "unsteady_rounds", "too_few_rounds", "client_late", "lasting_noise", "one_stall_tail", "recording_gap", "uneven_exclusion"}

// sizes measures what the figures of a report show.
func sizes(e *analysis.Evidence) effects {
	s := effects{map[analysis.FindingPlace]float64{}, map[string]float64{}}
	widths := map[string][]float64{}
	for _, r := range e.Results {
		if m, _ := result.LookupMetric(r.Metric); r.VsBaseline == nil || m.Aspect != result.Traffic && m.Aspect != result.Typical {
			continue
		}
		if d := math.Abs(math.Log(r.VsBaseline.Ratio)); !math.IsInf(d, 0) && !math.IsNaN(d) {
			for _, at := range []analysis.FindingPlace{{Contender: r.Contender, Step: r.Step}, {Contender: r.Contender}, {Step: r.Step}} {
				s.ratios[at] = max(s.ratios[at], d)
			}
		}
		width := r.VsBaseline.HalfWidth()
		if math.IsInf(width, 0) {
			width = stat.LogDeviation(r.Values)
		}
		if width > 0 && !math.IsInf(width, 0) {
			widths[r.Step] = append(widths[r.Step], math.Log1p(width))
			widths[""] = append(widths[""], math.Log1p(width))
		}
	}
	for step, list := range widths {
		s.noise[step] = stat.Median(list)
	}
	return s
}

// of returns the size of the difference that a finding explains.
func (s effects) of(f analysis.Finding) float64 {
	switch {
	case f.Weight > 0:
		return f.Weight
	case slices.Contains(networkCauses, f.Code):
		return s.ratios[analysis.FindingPlace{Contender: f.Contender, Step: f.Step}]
	case slices.Contains(noiseCauses, f.Code):
		return s.noise[f.Step]
	}
	return 0
}

// imported is the arena of runs that others measured and published.
const (
	imported     = "imported"
	importedNext = "none: others measured and published these figures"
)

// nextStep replaces the names in braces. The figures of an imported run can't be measured
// again.
func nextStep(e *analysis.Evidence, next string, f analysis.Finding) string {
	if e.Run.Arena == imported && slices.ContainsFunc([]string{"{again}", "cnibench run", "cnibench check", "cnibench diagnose", "cnibench probe", "/raw", "sysctl"}, func(s string) bool { return strings.Contains(next, s) }) {
		return importedNext
	}
	again := "cnibench run --suite " + e.Run.Plan.Suite
	arena := ""
	switch e.Run.Arena {
	case "kube", "microvm":
		arena = " --arena " + e.Run.Arena
	}
	if e.Run.Plan.Suite == "" {
		again = "cnibench run"
	}
	return strings.NewReplacer("{again}", again+arena, "{arena}", arena,
		"{run}", cmp.Or(e.Run.ID, "DIR"), "{rounds}", strconv.Itoa(max(e.RoundsWanted(), e.Rounds()+1, stat.NeedsForInterval(e.Opt.Confidence))),
		"{contender}", cmp.Or(f.Contender, "supported"), "{step}", cmp.Or(f.Step, "STEP")).Replace(next)
}

// countOf returns "rounds 1 and 3 of 7", or "5 rounds of 7".
func countOf(rounds []int, all int) string {
	if len(rounds) <= maxExamples {
		return fmt.Sprintf("%s of %d", analysis.RoundsText(rounds), all)
	}
	return fmt.Sprintf("%s of %d", unit.Plural(len(rounds), "round"), all)
}
