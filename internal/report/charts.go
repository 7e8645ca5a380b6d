package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/unit"
)

// chart is one drawing of the page, with the words that stand for it where it
// can't be seen. ui/src/model.ts has the same shape: the script only draws.
type chart struct {
	ID     string   `json:"id"`
	Kind   string   `json:"kind"` // bars, curves, scatter
	X      *axis    `json:"x,omitempty"`
	Y      *axis    `json:"y,omitempty"`
	Rows   []bar    `json:"rows,omitempty"`
	Series []series `json:"series,omitempty"`
	Points []point  `json:"points,omitempty"`

	Title   string     `json:"-"`
	Caption string     `json:"-"` // how to read it
	Label   string     `json:"-"` // for who can't see it
	Table   plainTable `json:"-"` // the same figures
}

type plainTable struct {
	Head []string
	Rows [][]string
}

type axis struct {
	Label string `json:"label"`
	Unit  string `json:"unit"`
}

// named is a contender with its place in the palette; the baseline's is 0.
type named struct {
	Name  string `json:"name"`
	Color int    `json:"color"`
}

func newNamed(id string, colors map[string]int) named { return named{printable(id), colors[id]} }

type figure struct {
	Value float64  `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
	Text  string   `json:"text"`
}

type bar struct {
	named
	figure
	Mark       string    `json:"mark"` // beside the bar: value and tier
	Rounds     []float64 `json:"rounds"`
	RoundTexts []string  `json:"roundTexts"`
}

type series struct {
	named
	Points []curvePoint `json:"points"`
}

type curvePoint struct {
	Nines float64 `json:"nines"` // log10(1/(1-p)): 2 is the 99th percentile
	Value float64 `json:"value"`
	Text  string  `json:"text"`
}

type point struct {
	named
	X figure `json:"x"`
	Y figure `json:"y"`
}

// charts are the drawings of one group: goodput of every step that has it, the
// latency curves of every step that has them, and the cost against what it buys.
func (v *view) charts(g *group, prefix string) []chart {
	colors := v.colors()
	var out []chart
	for _, s := range v.Steps {
		if c, ok := g.has(s.ID, "goodput"); ok {
			out = append(out, barChart(g, c, colors))
		}
	}
	for _, s := range v.Steps {
		if curves := v.curves(g, s.ID); len(curves) > 0 {
			out = append(out, curveChart(g, s.ID, curves, colors))
		} else if c, ok := g.latencyBars(s.ID); ok {
			out = append(out, barChart(g, c, colors))
		}
	}
	if c := v.scatter(g, colors); c != nil {
		out = append(out, *c)
	}
	for i := range out {
		out[i].ID = prefix + "-" + strconv.Itoa(i+1)
	}
	return out
}

// latencyBars is the column that stands in where a step's curves are missing.
func (g *group) latencyBars(step string) (column, bool) {
	for _, metric := range []string{"latency_p50", "latency_mean"} {
		if c, ok := g.has(step, metric); ok {
			return c, true
		}
	}
	return column{}, false
}

// colors gives every contender its place in the palette, the same in all charts.
func (v *view) colors() map[string]int {
	colors := map[string]int{v.Baseline: 0}
	for i := range v.Groups {
		for _, c := range v.Groups[i].Contenders {
			if _, has := colors[c.ID]; !has {
				colors[c.ID] = len(colors)
			}
		}
	}
	return colors
}

func newFigure(r *analysis.Result) figure {
	f := figure{Value: r.Median, Text: value(r)}
	if r.CI != nil {
		low, high := r.CI[0], r.CI[1]
		f.Low, f.High = &low, &high
		f.Text += " (" + interval(r) + ")"
	}
	return f
}

func barChart(g *group, c column, colors map[string]int) chart {
	out := chart{
		Kind: "bars", X: &axis{c.Head(), c.Unit},
		Title:   c.Head() + ", " + c.Step,
		Caption: "Bar: median of the rounds. Line: its interval. Dots: every round. " + betterIs(c.Better) + ".",
		Table:   plainTable{Head: []string{"contender", "median", "interval", "rounds", "tier"}},
	}
	for _, contender := range g.Contenders {
		r := g.figure(contender.ID, c)
		if r == nil {
			continue
		}
		b := bar{named: newNamed(contender.ID, colors), figure: newFigure(r), Mark: value(r), Rounds: r.Values, RoundTexts: []string{}}
		if t := tier(r); t != "" {
			b.Mark += "  " + t
		}
		words := ""
		for i, val := range r.Values {
			text := unit.Format(val, r.Unit)
			b.RoundTexts = append(b.RoundTexts, text)
			if i > 0 {
				words += ", "
			}
			words += text
		}
		out.Rows = append(out.Rows, b)
		out.Table.Rows = append(out.Table.Rows, []string{contender.ID, value(r), interval(r), words, tier(r)})
	}
	out.Label = fmt.Sprintf("Bar chart of %s with %s; the table below it has the figures", out.Title, plural(len(out.Rows), "contender"))
	return out
}

func betterIs(better string) string {
	if better == "lower" {
		return "Lower is better"
	}
	return "Higher is better"
}

// curves are those of one clock at a step: from the intended start where there
// are any, else from the actual send. The send's own lag is no latency.
func (v *view) curves(g *group, step string) []analysis.Curve {
	for _, clock := range []string{"latency", "service_time", "network_time"} {
		var out []analysis.Curve
		for _, c := range g.Contenders {
			i := slices.IndexFunc(v.Curves, func(curve analysis.Curve) bool {
				return curve.Contender == c.ID && curve.Step == step && curve.Clock == clock &&
					curve.Kernel == g.Kernel && curve.Underlay == g.Underlay && len(curve.Points) > 0
			})
			if i >= 0 {
				out = append(out, v.Curves[i])
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

func curveChart(g *group, step string, curves []analysis.Curve, colors map[string]int) chart {
	what := map[string]string{
		"latency":      "Latency",
		"service_time": "Service time",
		"network_time": "Network time",
	}[curves[0].Clock]
	out := chart{
		Kind: "curves", Y: &axis{what, "s"},
		Title:   what + " by percentile, " + step,
		Caption: "All valid rounds merged; each step to the right is another nine. A curve ends where fewer than ten samples lie beyond. Lower is better.",
		Table:   plainTable{Head: []string{"contender", "samples"}},
	}
	var percentiles []float64
	for _, want := range []float64{50, 90, 99, 99.9, 99.99, 99.999} {
		if slices.ContainsFunc(curves, func(c analysis.Curve) bool { return pointAt(c, want) != nil }) {
			percentiles = append(percentiles, want)
			out.Table.Head = append(out.Table.Head, "p"+exact(want))
		}
	}
	for _, c := range curves {
		s := series{named: newNamed(c.Contender, colors), Points: []curvePoint{}}
		for _, p := range c.Points {
			if p.Percentile < 0 || p.Percentile >= 100 || !isFinite(p.Seconds) || p.Seconds <= 0 {
				continue // the maximum has no place on an axis of nines
			}
			s.Points = append(s.Points, curvePoint{
				Nines: -math.Log10(1 - p.Percentile/100), Value: p.Seconds,
				Text: fmt.Sprintf("p%s: %s", strconv.FormatFloat(p.Percentile, 'g', 6, 64), unit.Format(p.Seconds, "s")),
			})
		}
		out.Series = append(out.Series, s)
		row := []string{c.Contender, unit.Format(float64(c.Count), "count")}
		for _, want := range percentiles {
			cell := unit.Missing
			if p := pointAt(c, want); p != nil {
				cell = unit.Format(p.Seconds, "s")
			}
			row = append(row, cell)
		}
		out.Table.Rows = append(out.Table.Rows, row)
	}
	out.Label = fmt.Sprintf("Line chart of %s with %s; the table below it has the figures", out.Title, plural(len(curves), "contender"))
	return out
}

func pointAt(c analysis.Curve, percentile float64) *analysis.CurvePoint {
	for i, p := range c.Points {
		if math.Abs(p.Percentile-percentile) < 1e-9 {
			return &c.Points[i]
		}
	}
	return nil
}

// scatter sets the CPU cost against memory, where there is any, else against
// what the CPU bought; nil if there are not two figures to set side by side.
func (v *view) scatter(g *group, colors map[string]int) *chart {
	x, ok := v.first(g, "cpu_per_gbit", "cpu_per_request")
	if !ok {
		return nil
	}
	y, ok := v.first(g, "memory_overhead")
	if !ok {
		if y, ok = v.first(g, "goodput", "rate"); !ok {
			return nil
		}
	}
	out := &chart{
		Kind: "scatter", X: &axis{x.Head(), x.Unit}, Y: &axis{y.Head(), y.Unit},
		Title:   x.Head() + " against " + lowerFirst(y.Head()),
		Caption: fmt.Sprintf("Medians with their intervals; %s at %s, %s at %s. %s", x.Head(), x.Step, lowerFirst(y.Head()), y.Step, corner(y.Better)),
		Table:   plainTable{Head: []string{"contender", x.Head(), y.Head()}},
	}
	for _, c := range g.Contenders {
		fx, fy := g.figure(c.ID, x), g.figure(c.ID, y)
		if fx == nil || fy == nil {
			continue
		}
		p := point{newNamed(c.ID, colors), newFigure(fx), newFigure(fy)}
		out.Points = append(out.Points, p)
		out.Table.Rows = append(out.Table.Rows, []string{c.ID, p.X.Text, p.Y.Text})
	}
	if len(out.Points) < 2 {
		return nil
	}
	out.Label = fmt.Sprintf("Scatter chart of %s with %s; the table below it has the figures", out.Title, plural(len(out.Points), "contender"))
	return out
}

func corner(yBetter string) string {
	if yBetter == "higher" {
		return "Best is the upper left."
	}
	return "Best is the lower left."
}

// first is the column of the first step that has one of the metrics.
func (v *view) first(g *group, metrics ...string) (column, bool) {
	for _, m := range metrics {
		for _, s := range v.Steps {
			if c, ok := g.has(s.ID, m); ok {
				return c, true
			}
		}
	}
	return column{}, false
}

func lowerFirst(s string) string {
	if len(s) > 1 && s[1] >= 'a' && s[1] <= 'z' && s[0] >= 'A' && s[0] <= 'Z' {
		return string(s[0]+'a'-'A') + s[1:]
	}
	return s
}
