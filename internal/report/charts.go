package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// chart is one drawing of the page, with its texts and the table of its figures.
// ui/src/model.ts has the same shape; the script only draws.
type chart struct {
	ID     string   `json:"id"`
	Kind   string   `json:"kind"` // bars, curves, forest, load, pairs, scatter, slopes, stacks
	X      *axis    `json:"x,omitempty"`
	Y      *axis    `json:"y,omitempty"`
	Rows   []bar    `json:"rows,omitempty"`
	Series []series `json:"series,omitempty"`
	Points []point  `json:"points,omitempty"`
	Parts  []string `json:"parts,omitempty"` // names of the parts of every stack, from below
	Stacks []stack  `json:"stacks,omitempty"`
	Pairs  []pair   `json:"pairs,omitempty"`
	Reach  float64  `json:"reach,omitempty"`  // end of the axis, so that neighbouring charts have the same scale
	Steady float64  `json:"steady,omitempty"` // of curves: the percentile beyond which rounds differ too much to compare contenders; 0: none does

	View    string     `json:"-"` // the part of the page that shows the chart
	Places  places     `json:"-"`
	Title   string     `json:"-"`
	Caption string     `json:"-"` // how to read the chart
	Label   string     `json:"-"` // for screen readers
	Table   plainTable `json:"-"` // the figures of the chart
}

// plainTable is a table with a contender in each row.
type plainTable struct {
	Head []string
	Rows [][]string
	Of   []int // place of each row's contender in the palette
}

func (t *plainTable) add(contender int, cells ...string) {
	t.Of, t.Rows = append(t.Of, contender), append(t.Rows, cells)
}

type axis struct {
	Label string `json:"label"`
	Unit  string `json:"unit"`
}

type figure struct {
	Value float64  `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
	Text  string   `json:"text"`
}

// bar is the bar of a contender; C is the contender's place in the palette.
type bar struct {
	C int `json:"c"`
	figure
	Mark   string    `json:"mark"` // beside the bar: value and tier
	Rounds []float64 `json:"rounds"`
}

// series is the line of a contender, or of something else, which then has a Name.
type series struct {
	C      int        `json:"c"`
	Name   string     `json:"name,omitempty"`
	Points [][2]short `json:"points"` // of curves: percentile and seconds
}

type point struct {
	C        int    `json:"c"`
	X        figure `json:"x"`
	Y        figure `json:"y"`
	Frontier bool   `json:"frontier,omitempty"`
}

// stack is a quantity's parts, in the order of chart.Parts.
type stack struct {
	C      int      `json:"c"`
	Side   string   `json:"side"` // client or server
	Values []*short `json:"values"`
}

// pair is a contender's figure at every part, in the order of chart.Parts; nil where it has none.
type pair struct {
	C       int       `json:"c"`
	Figures []*figure `json:"figures"`
}

// short is a figure that is only drawn, and written with seven digits, which is more than a
// screen can show. NaN is written as null.
type short float64

func (s short) MarshalJSON() ([]byte, error) {
	if !layout.IsFinite(float64(s)) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(s), 'g', 7, 64), nil
}

// charts returns the drawings of one group.
func (v *sheet) charts(g *layout.Group, prefix string) []chart {
	colors := v.colors()
	var out []chart
	show := func(view string, charts ...chart) {
		for _, c := range charts {
			c.View = view
			out = append(out, c)
		}
	}
	for _, s := range v.Steps {
		for _, metric := range []string{result.Goodput, result.LoadGoodput} {
			if c, ok := g.Has(s.ID, metric); ok && anyAboveZero(g, s.ID, metric) {
				show(viewThroughput, barChart(g, c, colors))
			}
		}
	}
	scales := v.Scales()
	first := layout.FindTimed(g, scales)
	for i, l := range scales {
		show(viewLatency, v.scaleCharts(g, l, i == first, colors)...)
	}
	show(viewLatency, v.loadedCharts(g, colors)...)
	families := v.families(g, result.RateParam, result.Rate)
	for _, f := range families {
		show(viewLatency, v.loadCharts(g, f, colors)...)
	}
	for _, s := range v.Steps {
		if curves := v.curves(g, s.ID); len(curves) > 0 {
			c := curveChart(s.ID, curves, colors)
			if steady := g.Steady(s.ID, curves[0].Clock); steady < 100 {
				c.Steady = max(steady, leastPercentile)
				c.Caption += greyText(c.Steady, "this run")
			}
			show(viewLatency, c)
		} else if c, ok := latencyBars(g, s.ID); ok {
			show(viewLatency, barChart(g, c, colors))
		}
	}
	for _, f := range families {
		show(viewRates, v.rateCharts(g, f, colors)...)
	}
	efficient := v.efficiencyCharts(g, colors)
	show(viewEfficiency, efficient...)
	if c := v.scatter(g, colors); c != nil && len(efficient) == 0 { // no chart twice
		show(viewEfficiency, *c)
	}
	for _, s := range v.Steps {
		if c := v.costAgainstMemory(g, s, colors); c != nil {
			show(viewEfficiency, *c)
		}
		show(viewResources, v.resourceCharts(g, s, colors)...)
	}
	for _, c := range v.AnswerColumns(g) {
		if f := v.forest(g, c, colors); f != nil && v.Usable(g, c) {
			show(viewOverview, *f)
		}
	}
	if c := v.slopes(g, colors); c != nil {
		show(viewOverview, *c)
	}
	show(viewStudy, v.studyCharts(g, colors)...)
	for i := range out {
		out[i].ID = prefix + "-" + strconv.Itoa(i+1)
		out[i].Places.Steps = v.stepPlaces(out[i].Places)
		if steps := out[i].Places.steps; len(steps) == 1 {
			if what, ends := strings.CutSuffix(out[i].Title, ", "+steps[0]); ends {
				out[i].Title = what + ", " + v.title(steps[0])
			}
		}
	}
	oneScale(out)
	return out
}

// leastPercentile is where the axis of curves begins.
const leastPercentile = 0.001

// greyText says what is grey in a chart of curves, beyond that percentile.
func greyText(steady float64, of string) string {
	where := "beyond p" + layout.Exact(steady)
	if steady <= leastPercentile {
		where = "everywhere"
	}
	return " Grey: " + where + " the rounds of " + of + " differ too much to compare contenders."
}

// latencyBars returns the column that is shown if a step has no curves.
func latencyBars(g *layout.Group, step string) (layout.Column, bool) {
	return g.Has(step, result.MainMetricOf(result.Typical, func(metric string) bool { _, ok := g.Has(step, metric); return ok }))
}

func newFigure(r *analysis.Result) figure {
	f := figure{Value: r.Median, Text: layout.Value(r)}
	if r.CI != nil {
		low, high := r.CI[0], r.CI[1]
		f.Low, f.High = &low, &high
		f.Text += " (" + layout.Interval(r) + ")"
	}
	return f
}

func barChart(g *layout.Group, c layout.Column, colors map[string]int) chart {
	out := chart{
		Kind: "bars", X: &axis{c.Head(), c.Unit}, Places: ofSteps(c.Step),
		Title: c.Head() + ", " + c.Step,
		Table: plainTable{Head: []string{"contender", "median", "interval", "rounds", "groups"}},
	}
	intervals := 0
	for _, contender := range g.Contenders {
		r := g.Figure(contender.ID, c)
		if r == nil {
			continue
		}
		b := bar{C: colors[contender.ID], figure: newFigure(r), Mark: layout.Value(r), Rounds: r.Values}
		if b.Low != nil {
			intervals++
		}
		if t := layout.Letters(r); t != "" {
			b.Mark += "  " + t
		}
		words := ""
		for i, val := range r.Values {
			if i > 0 {
				words += ", "
			}
			words += unit.Format(val, r.Unit)
		}
		out.Rows = append(out.Rows, b)
		out.Table.add(b.C, contender.ID, layout.Value(r), layout.Interval(r), words, layout.Letters(r))
	}
	line := "Line: its interval"
	switch intervals {
	case 0:
		line = "Too few rounds for an interval"
	case len(out.Rows):
	default:
		line += ", where the rounds are enough for one"
	}
	out.Caption = "Bar: median of the rounds. " + line + ". Dots: every round. " + betterIs(c.Better) + "."
	out.Label = fmt.Sprintf("Bar chart of %s with %s; the table below it has the figures", out.Title, unit.Plural(len(out.Rows), "contender"))
	return out
}

// logarithmic is a part of the captions of charts with a logarithmic axis.
const logarithmic = "The vertical axis is logarithmic and does not begin at zero."

func betterIs(better string) string {
	if better == "lower" {
		return "Lower is better"
	}
	return "Higher is better"
}

// curves returns the curves of a step by the clock of its main latency in the tables, or else
// by the first of result.Clocks that has any.
func (v *sheet) curves(g *layout.Group, step string) []analysis.Curve {
	clocks := result.Clocks()
	if c, ok := latencyBars(g, step); ok {
		m, _ := result.LookupMetric(c.Metric)
		clocks = append([]string{m.Clock}, clocks...)
	}
	for _, clock := range clocks {
		var out []analysis.Curve
		for _, c := range g.Contenders {
			i := slices.IndexFunc(v.Curves, func(curve analysis.Curve) bool {
				return curve.Contender == c.ID && curve.Step == step && curve.Clock == clock &&
					(layout.Site{Kernel: curve.Kernel, Underlay: curve.Underlay}) == g.Site && len(curve.Points) > 0
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

func curveChart(step string, curves []analysis.Curve, colors map[string]int) chart {
	what := layout.MetricLabel(curves[0].Clock)
	out := chart{
		Kind: "curves", Y: &axis{what, "s"}, Places: ofSteps(step),
		Title:   what + " by percentile, " + step,
		Caption: "All valid rounds merged; from 90 % on, each step to the right is another nine. A curve ends where fewer than ten samples lie beyond. " + logarithmic + " Lower is better.",
		Table:   plainTable{Head: []string{"contender", "samples"}},
	}
	var percentiles []float64
	for _, want := range []float64{50, 90, 99, 99.9, 99.99, 99.999} {
		if slices.ContainsFunc(curves, func(c analysis.Curve) bool { return pointAt(c, want) != nil }) {
			percentiles = append(percentiles, want)
			out.Table.Head = append(out.Table.Head, "p"+layout.Exact(want))
		}
	}
	for _, c := range curves {
		out.Series = append(out.Series, series{C: colors[c.Contender], Points: curvePoints(c)})
		row := []string{c.Contender, unit.Format(float64(c.Count), "count")}
		for _, want := range percentiles {
			cell := unit.Missing
			if p := pointAt(c, want); p != nil {
				cell = unit.Format(p.Seconds, "s")
			}
			row = append(row, cell)
		}
		out.Table.add(colors[c.Contender], row...)
	}
	out.Label = fmt.Sprintf("Line chart of %s with %s; the table below it has the figures", out.Title, unit.Plural(len(curves), "contender"))
	return out
}

// curvePoints leaves out the maximum, because 100 % has no place on an axis of nines.
func curvePoints(c analysis.Curve) [][2]short {
	points := [][2]short{}
	for _, p := range c.Points {
		if p.Percentile >= 0 && p.Percentile < 100 && layout.IsFinite(p.Seconds) && p.Seconds > 0 {
			points = append(points, [2]short{short(p.Percentile), short(p.Seconds)})
		}
	}
	return points
}

func pointAt(c analysis.Curve, percentile float64) *analysis.CurvePoint {
	for i, p := range c.Points {
		if math.Abs(p.Percentile-percentile) < 1e-9 {
			return &c.Points[i]
		}
	}
	return nil
}
