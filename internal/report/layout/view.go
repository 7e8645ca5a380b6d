// Package layout arranges a report for reading: contenders in groups, figures in
// columns, findings by their causes, and the sentences that every format
// shares. It writes nothing and computes no statistic. Next: view.go.
package layout

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// Site is a kernel and an underlay. Only contenders of the same site are compared.
type Site struct{ Kernel, Underlay string }

// Group is the contenders of a site.
type Group struct {
	Site
	Emulated   bool // the CPU was emulated, so the figures are many times worse
	Contenders []Contender
	figures    map[figureKey]*analysis.Result
	InPhase    map[string]bool // steps whose CPU the kernel sampled in phase with the load
	measured   map[result.Key]bool
}

// Contender is a row of a table.
type Contender struct {
	ID       string
	Baseline bool
	Info     result.ContenderInfo
}

type figureKey struct{ contender, step, metric string }

// Column is one figure of every contender.
type Column struct{ Step, Metric, Unit, Better string }

// Head names the column's figure, without its step.
func (c Column) Head() string { return MetricLabel(c.Metric) }

// View is a report as tables show it.
type View struct {
	*analysis.Report
	Groups []Group
	Steps  []result.Step

	weak bool // some figures, not all, have too few rounds for a ratio
}

// New arranges r. Groups are in the order of the results. In each group the baseline comes
// first, then the contenders by their rank in the headline's columns.
func New(r *analysis.Report) *View {
	r, weak := withoutWeakRatios(r)
	v := &View{Report: r, Steps: steps(r), weak: weak}
	for i := range r.Results {
		res := &r.Results[i]
		g := v.group(Site{Kernel: res.Kernel, Underlay: res.Underlay})
		key := figureKey{res.Contender, res.Step, res.Metric}
		if _, twice := g.figures[key]; !twice {
			g.figures[key] = res
		}
		g.add(res.Contender)
	}
	// A contender of the plan without any valid sample still has its row.
	// One that has figures under another kernel only was not measured here.
	kernelOf := map[result.Entry]string{}
	for _, res := range r.Results {
		kernelOf[result.Entry{ID: res.Contender, Underlay: res.Underlay}] = res.Kernel
	}
	for i := range v.Groups {
		g := &v.Groups[i]
		for _, e := range r.Plan.Contenders {
			if kernel, known := kernelOf[e]; g.Underlay == e.Underlay && (!known || kernel == g.Kernel) {
				g.add(e.ID)
			}
		}
	}
	infos := make(map[string]result.ContenderInfo, len(r.Contenders))
	for _, info := range r.Contenders {
		infos[info.ID] = info
	}
	for i := range v.Groups {
		g := &v.Groups[i]
		for j := range g.Contenders {
			c := &g.Contenders[j]
			c.Info, c.Baseline = infos[c.ID], c.ID == r.Baseline
		}
		g.sort(Headline(g, v.Steps))
	}
	return v
}

// withoutWeakRatios returns r without ratios from fewer than minPairs pairs. Such a
// ratio says nothing, but beside others it would look as good as they are.
func withoutWeakRatios(r *analysis.Report) (_ *analysis.Report, some bool) {
	out := *r
	dropped, kept := false, false
	out.Results = analysis.ChangeEach(r.Results, func(f *analysis.Result) {
		if c := f.VsBaseline; c != nil && c.Pairs > 0 && c.Pairs < minPairs {
			f.VsBaseline, dropped = nil, true
		} else if c != nil {
			kept = true
		}
	})
	return &out, dropped && kept
}

// FewRounds is a sentence for the legend where some contenders have no ratio for want of
// rounds; else "".
func (v *View) FewRounds() string {
	if !v.weak {
		return ""
	}
	return fmt.Sprintf("Figures of fewer than %d rounds have no ratio.", minPairs)
}

func (v *View) group(at Site) *Group {
	if i := v.GroupPlace(at); i >= 0 {
		return &v.Groups[i]
	}
	g := Group{
		Site: at, Emulated: v.Run.Environment.Emulated(), measured: v.Measured,
		figures: map[figureKey]*analysis.Result{}, InPhase: map[string]bool{},
	}
	for _, f := range v.Findings {
		if f.Code != analysis.TickAliased {
			continue
		}
		g.InPhase[f.Step] = true
		for _, place := range f.Places {
			g.InPhase[place.Step] = true
		}
	}
	v.Groups = append(v.Groups, g)
	return &v.Groups[len(v.Groups)-1]
}

// GroupPlace returns the index of the site's group, or -1.
func (v *View) GroupPlace(at Site) int {
	return slices.IndexFunc(v.Groups, func(g Group) bool { return g.Site == at })
}

func (g *Group) add(id string) {
	if !slices.ContainsFunc(g.Contenders, func(c Contender) bool { return c.ID == id }) {
		g.Contenders = append(g.Contenders, Contender{ID: id})
	}
}

// Figure returns the contender's figure of the column, or nil.
func (g *Group) Figure(contender string, c Column) *analysis.Result {
	return g.figures[figureKey{contender, c.Step, c.Metric}]
}

// Absent says why the contender has no figure of the column.
func (g *Group) Absent(c Contender, col Column) string {
	metric, _ := result.LookupMetric(col.Metric)
	switch {
	case c.Baseline && metric.Has(result.NotBaseline):
		return unit.Missing
	case g.measured != nil && !g.measured[result.Key{Contender: c.ID, Underlay: g.Underlay, Step: col.Step}]:
		return "not measured"
	}
	return "no valid sample"
}

// Has returns the column of a metric at a step, if any contender has the figure. CPU by
// request that was sampled in phase with the load does not count, because it is wrong.
func (g *Group) Has(step, metric string) (Column, bool) {
	if metric == result.CPUPerRequest && g.InPhase[step] {
		return Column{}, false
	}
	for _, c := range g.Contenders {
		if f := g.figures[figureKey{c.ID, step, metric}]; f != nil {
			return Column{step, metric, f.Unit, f.Better}, true
		}
	}
	return Column{}, false
}

// SortBy returns the group with its contenders in the order of other columns.
func (g *Group) SortBy(columns []Column) *Group {
	out := *g
	out.Contenders = slices.Clone(g.Contenders)
	out.sort(columns)
	return &out
}

// sort puts the baseline first, then the tiers from the best on, then contenders without a
// rank. Within a tier the better median comes first; that order has no significance.
func (g *Group) sort(by []Column) {
	slices.SortStableFunc(g.Contenders, func(a, b Contender) int {
		if a.Baseline != b.Baseline {
			if a.Baseline {
				return -1
			}
			return 1
		}
		for _, c := range by {
			if order := byRank(g.Figure(a.ID, c), g.Figure(b.ID, c)); order != 0 {
				return order
			}
		}
		return cmp.Compare(a.ID, b.ID)
	})
}

// byRank orders figures of a column, the best first; a missing figure is last.
func byRank(a, b *analysis.Result) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	case a.Ranked != b.Ranked:
		if a.Ranked {
			return -1
		}
		return 1
	case a.Tier != b.Tier && a.Tier == 0:
		return 1
	case a.Tier != b.Tier && b.Tier == 0:
		return -1
	case a.Tier != b.Tier:
		return cmp.Compare(a.Tier, b.Tier)
	case a.Better == "higher":
		return cmp.Compare(b.Median, a.Median)
	default:
		return cmp.Compare(a.Median, b.Median)
	}
}

// steps returns the steps of the plan, and after them the steps that only results name.
func steps(r *analysis.Report) []result.Step {
	out := slices.Clone(r.Steps)
	for _, res := range r.Results {
		if !slices.ContainsFunc(out, func(s result.Step) bool { return s.ID == res.Step }) {
			out = append(out, result.Step{ID: res.Step, Path: res.Path})
		}
	}
	return out
}

// Absent says how many contenders ran no step at all, and how many single steps other
// contenders did not run: "2 contenders, 4 steps of others".
func (v *View) Absent() string {
	whole, steps := 0, 0
	for _, u := range v.Unsupported {
		if u.Step == "" {
			whole++
		} else {
			steps++
		}
	}
	switch {
	case steps == 0:
		return unit.Plural(whole, "contender")
	case whole == 0:
		return unit.Plural(steps, "step")
	}
	return unit.Plural(whole, "contender") + ", " + unit.Plural(steps, "step") + " of others"
}
