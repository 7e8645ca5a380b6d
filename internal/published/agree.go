package published

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// ConditionKeys returns the keys of Study.Conditions, in the order of reports.
func ConditionKeys() []string { return []string{"nodes", "kernel", "card", "mtu", "policy"} }

// minRanked is the smallest number of contenders whose order is compared.
const minRanked = 4

// confidence is the confidence level of the agreements' intervals.
const confidence = 0.95

// Attach adds to the report the studies' figures, the agreement of the rank orders, and the
// differences between the machines.
func Attach(r *analysis.Report, studies []Study) {
	r.Published = Beside(r, studies)
	r.Agreements = agreements(r.Published)
	r.Differences = nil
	for _, s := range studies {
		if slices.ContainsFunc(r.Agreements, func(a analysis.Agreement) bool { return a.Study == s.ID }) {
			r.Differences = append(r.Differences, differences(r, s)...)
		}
	}
}

// agreements compares the order of contenders for each table of a study and each step, metric
// and kernel of the report. It leaves out figures that a study's link limited. If the report
// has a contender on several underlays, or the table has it several times, the first one
// counts.
func agreements(figures []analysis.PublishedFigure) []analysis.Agreement {
	type place struct{ study, table, step, metric, kernel string }
	var order []place
	of := map[place][]analysis.PublishedFigure{}
	limited := map[place]int{}
	for _, f := range figures {
		at := place{f.Study, f.Table, f.Step, f.Metric, f.Kernel}
		if of[at] == nil && limited[at] == 0 {
			order = append(order, at)
		}
		switch {
		case f.LineLimited:
			limited[at]++
		case !slices.ContainsFunc(of[at], func(o analysis.PublishedFigure) bool { return o.Contender == f.Contender }):
			of[at] = append(of[at], f)
		}
	}
	var out []analysis.Agreement
	for _, at := range order {
		list := of[at]
		if len(list) < minRanked {
			continue
		}
		var ours, theirs []float64
		for _, f := range list {
			ours, theirs = append(ours, f.Ours.Ratio), append(theirs, f.Ratio)
		}
		a := analysis.Agreement{
			Study: at.study, Table: at.table, Step: at.step, Metric: at.metric, Kernel: at.kernel,
			N: len(list), LineLimited: limited[at],
		}
		if a.Tau = stat.KendallTau(ours, theirs); math.IsNaN(a.Tau) {
			continue // all values of one side are equal
		}
		if low, high, ok := stat.KendallInterval(a.Tau, a.N, confidence); ok {
			a.CI = &analysis.Interval{low, high}
		}
		a.Among, a.Outliers = among(list), outliers(list, ours, theirs)
		out = append(out, a)
	}
	return out
}

// among returns Kendall's tau for every pair of the study's runs, over their common contenders,
// ascending.
func among(list []analysis.PublishedFigure) []float64 {
	runs := len(list[0].Runs)
	for _, f := range list {
		runs = min(runs, len(f.Runs))
	}
	var out []float64
	for i := range runs {
		for j := range i {
			var a, b []float64
			for _, f := range list {
				if !math.IsNaN(f.Runs[i] + f.Runs[j]) {
					a, b = append(a, f.Runs[i]), append(b, f.Runs[j])
				}
			}
			if tau := stat.KendallTau(a, b); len(a) >= minRanked && !math.IsNaN(tau) {
				out = append(out, tau)
			}
		}
	}
	slices.Sort(out)
	return out
}

// outliers returns the contenders whose places in the two orders differ by more than a third of
// the list and by at least two; the largest difference first.
func outliers(list []analysis.PublishedFigure, ours, theirs []float64) []analysis.Outlier {
	lower := list[0].Better == result.Lower
	a, b := places(ours, lower), places(theirs, lower)
	far := func(i int) float64 { return math.Abs(a[i] - b[i]) }
	var out []analysis.Outlier
	for i, f := range list {
		if far(i) >= 2 && far(i) > float64(len(list))/3 {
			out = append(out, analysis.Outlier{Contender: f.Contender, Ours: f.Ours.Ratio, Theirs: f.Ratio, OurPlace: a[i], TheirPlace: b[i]})
		}
	}
	slices.SortStableFunc(out, func(x, y analysis.Outlier) int {
		return cmp.Compare(math.Abs(y.OurPlace-y.TheirPlace), math.Abs(x.OurPlace-x.TheirPlace))
	})
	return out
}

// places returns each value's place, 1 for the best. Equal values share the mean of their
// places.
func places(values []float64, lower bool) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = 1
		for j, o := range values {
			switch {
			case i == j:
			case o == v:
				out[i] += 0.5
			case (o < v) == lower:
				out[i]++
			}
		}
	}
	return out
}

// differences returns the conditions for which the run's environment and the study have
// different values.
func differences(r *analysis.Report, s Study) []analysis.Difference {
	env, settings := r.Run.Environment, r.Plan.Settings
	ours := map[string]string{"kernel": env["kernel.release"], "mtu": settings["mtu"]}
	if shared := analysis.SharesMemory(r.Run.Arena); shared {
		ours["nodes"] = "network namespaces of one machine"
		ours["card"] = strings.TrimSpace(fmt.Sprintf("none: virtual links, --offload %s, line rate %s", cmp.Or(settings["offload"], "host"), cmp.Or(settings["line-rate"], "unlimited")))
		ours["policy"] = "the datapath of each product from the kernel's pieces; no agents"
	}
	out := []analysis.Difference{{Study: s.ID, What: "software", Ours: "cnibench " + r.Tool.Version, Theirs: s.Software}}
	for _, key := range ConditionKeys() {
		if theirs := s.Conditions[key]; theirs != "" && ours[key] != "" && theirs != ours[key] {
			out = append(out, analysis.Difference{Study: s.ID, What: key, Ours: ours[key], Theirs: theirs})
		}
	}
	return out
}
