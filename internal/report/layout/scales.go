package layout

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// Scale is the same load through a Service, with different numbers of other Services.
type Scale struct {
	Steps  []result.Step // by the number of other Services
	Direct string        // the step with the same load from pod to pod, or ""
}

// Name returns the ids of the steps without the number of Services.
func (l Scale) Name() string { return strings.TrimSuffix(l.Steps[0].ID, l.formatCount("-svc%d")) }

// About returns the summaries of the steps without the number of Services.
func (l Scale) About() string {
	return strings.TrimSuffix(Describe(result.Step{Summary: l.Steps[0].Summary, Workload: l.Steps[0].Workload}), l.formatCount(", beside %d other Services"))
}

func (l Scale) formatCount(format string) string { return fmt.Sprintf(format, l.Steps[0].Services) }

// Scales returns the loads that the plan has with several numbers of Services.
func (v *View) Scales() []Scale {
	byLoad := map[string]int{}
	var all []Scale
	for _, s := range v.Steps {
		if s.Services == 0 {
			continue
		}
		load, ok := loadOf(s)
		if !ok {
			continue
		}
		i, known := byLoad[load]
		if !known {
			i = len(all)
			byLoad[load], all = i, append(all, Scale{Direct: v.direct(load)})
		}
		all[i].Steps = append(all[i].Steps, s)
	}
	all = slices.DeleteFunc(all, func(l Scale) bool { return len(l.Steps) < 2 })
	for _, l := range all {
		slices.SortFunc(l.Steps, func(a, b result.Step) int { return a.Services - b.Services })
	}
	return all
}

// loadOf returns a text that is the same for steps with the same load.
func loadOf(s result.Step) (string, bool) {
	params, err := json.Marshal(s.Params) // keys in order
	return s.Workload + " " + string(params), err == nil
}

func (v *View) direct(load string) string {
	for _, s := range v.Steps {
		if same, ok := loadOf(s); ok && same == load && s.Path == "pod" {
			return s.ID
		}
	}
	return ""
}

// onScales says whether the step belongs to a scale.
func onScales(all []Scale, step string) bool {
	return slices.ContainsFunc(all, func(l Scale) bool {
		return slices.ContainsFunc(l.Steps, func(s result.Step) bool { return s.ID == step })
	})
}

// StepsOutside returns the steps that belong to no scale.
func (v *View) StepsOutside(all []Scale) []result.Step {
	return slices.DeleteFunc(slices.Clone(v.Steps), func(s result.Step) bool { return onScales(all, s.ID) })
}

// metrics returns the metrics of a scale: latencies and goodput, or without latencies the
// rate. first adds the time to program the Services.
func (l Scale) metrics(g *Group, first bool) []string {
	has := func(metric string) bool {
		return slices.ContainsFunc(l.Steps, func(s result.Step) bool { _, ok := g.Has(s.ID, metric); return ok })
	}
	names := result.OfAspect(result.Traffic)
	times := []string{}
	for _, aspect := range []result.Aspect{result.Typical, result.Tail} {
		if metric := result.MainMetricOf(aspect, has); metric != "" {
			times = append(times, metric)
		}
	}
	if len(times) > 0 {
		names = append(result.MainMetrics(result.Traffic), times...)
	}
	if first {
		names = append(names, SyncTime)
	}
	return slices.DeleteFunc(names, func(m string) bool { return !has(m) })
}

// FindTimed returns the index of the first scale that has the time to program the Services, or
// -1.
func FindTimed(g *Group, all []Scale) int {
	return slices.IndexFunc(all, func(l Scale) bool { return slices.Contains(l.metrics(g, true), SyncTime) })
}

// rungs is one metric of a scale: for every contender a figure at each number
// of Services.
type rungs struct {
	Metric string
	Head   []string
	Rows   []rung
}

type rung struct {
	Contender
	Cells []*analysis.Result // in the order of Head; nil without a figure
	Grown string             // the last figure divided by the first; "" if one is missing
}

// Tables returns a table for each metric of the scale.
func (l Scale) Tables(g *Group, first bool) []rungs {
	var out []rungs
	for _, metric := range l.metrics(g, first) {
		t := rungs{Metric: metric}
		steps := l.Steps
		if _, ok := g.Has(l.Direct, metric); ok {
			t.Head = append(t.Head, "no Service")
			steps = append([]result.Step{{ID: l.Direct}}, steps...)
		}
		for _, s := range l.Steps {
			t.Head = append(t.Head, unit.Format(float64(s.Services), "count"))
		}
		for _, c := range g.Contenders {
			row := rung{Contender: c}
			some := false
			for _, s := range steps {
				f := g.Figure(c.ID, Column{Step: s.ID, Metric: metric})
				some = some || f != nil
				row.Cells = append(row.Cells, f)
			}
			low := g.Figure(c.ID, Column{Step: l.Steps[0].ID, Metric: metric})
			high := g.Figure(c.ID, Column{Step: l.Steps[len(l.Steps)-1].ID, Metric: metric})
			if low != nil && high != nil && low.Median > 0 {
				row.Grown = unit.Ratio(high.Median/low.Median) + "×"
			}
			if some {
				t.Rows = append(t.Rows, row)
			}
		}
		out = append(out, t)
	}
	return out
}

// SyncTime is the metric of the time to program the Services.
const SyncTime = result.ServiceSyncTime

// ProgrammedBy is what a reader must know before comparing contenders by SyncTime.
const ProgrammedBy = "in the lab, cnibench itself programs the Services and not the product's agent, and only iptables-restore and nft are the product's own tools; in a cluster, the API server and the product's agent are timed"

// Last returns the head of the column Grown.
func (l Scale) Last() string {
	return unit.Format(float64(l.Steps[len(l.Steps)-1].Services), "count") + " by " + unit.Format(float64(l.Steps[0].Services), "count")
}

// ValueOr returns Value, or unit.Missing if r is nil.
func ValueOr(r *analysis.Result) string {
	if r == nil {
		return unit.Missing
	}
	return Value(r)
}
