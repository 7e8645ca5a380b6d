package terminal

import (
	"fmt"
	"math"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	pretty "github.com/jedib0t/go-pretty/v6/text"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/text"
)

// This file makes the terminal's first tables: one for each step of the headline, with a
// line for each contender. Ratio and interval come first.

// detail says which columns a table has. Each of details has fewer columns than the
// previous one.
type detail struct {
	values   int  // columns with absolute figures; -1: all
	features bool // policy and encryption
}

var details = []detail{{-1, true}, {1, true}, {1, false}, {0, false}}

// byStep groups the headline's columns by step.
func byStep(head []layout.Column) [][]layout.Column {
	var out [][]layout.Column
	for _, c := range head {
		i := slices.IndexFunc(out, func(set []layout.Column) bool { return set[0].Step == c.Step })
		if i < 0 {
			out = append(out, []layout.Column{c})
			continue
		}
		out[i] = append(out[i], c)
	}
	return out
}

// headTables prints a table for each step of the headline, and a line for metrics without
// usable figures, unless the answer has named them.
func (t *Writer) headTables(g *layout.Group, head []layout.Column) {
	answered := t.AnswerColumns(g)
	for i, set := range byStep(head) {
		var usable, without []layout.Column
		var names []string
		for _, c := range set {
			switch {
			case t.Usable(g, c):
				usable = append(usable, c)
			case !slices.Contains(answered, c):
				without, names = append(without, c), append(names, c.Head())
			}
		}
		if len(usable) > 0 {
			t.stepTitle(set[0].Step)
			t.oneStep(g, usable, i == 0)
		}
		if len(without) > 0 {
			c := without[0]
			t.Wrap("", text.SafeLine(fmt.Sprintf("%s (%s): %s.", analysis.AndList(names), t.StepName(c.Step), t.Unusable(g, c))), Yellow)
		}
		if len(usable)+len(without) > 0 {
			t.Line("")
		}
	}
}

// stepTitle prints a step's name and, if there is room, its id.
func (t *Writer) stepTitle(id string) {
	name := pretty.Snip(text.SafeLine(t.StepName(id)), t.Width, "…")
	title := t.Paint(Bold, name)
	if short := t.Shorten(id); short != name && pretty.StringWidthWithoutEscSequences(name+" "+short) <= t.Width {
		title += t.Paint(Dim, " "+short)
	}
	t.Line(title)
}

// oneStep prints the columns in one table if they fit, else each in a table of its own.
func (t *Writer) oneStep(g *layout.Group, columns []layout.Column, features bool) {
	for _, d := range details {
		d.features = d.features && features
		lines := t.grid(g, columns, d)
		if slices.ContainsFunc(lines, func(s string) bool { return pretty.StringWidthWithoutEscSequences(s) > t.room }) && (d != details[len(details)-1]) {
			continue
		}
		if len(columns) > 1 && slices.ContainsFunc(lines, func(s string) bool { return pretty.StringWidthWithoutEscSequences(s) > t.room }) {
			break
		}
		for _, line := range lines {
			t.Line(line)
		}
		t.footnote(g, columns)
		return
	}
	for _, c := range columns {
		t.oneStep(g, []layout.Column{c}, features)
		features = false
	}
}

// grid returns the lines of a table.
func (t *Writer) grid(g *layout.Group, columns []layout.Column, d detail) []string {
	g = g.SortBy(columns)
	lettered, ratios := false, false
	for _, c := range g.Contenders {
		f := g.Figure(c.ID, columns[0])
		lettered = lettered || f != nil && len(f.Letters) > 0
	}
	head := table.Row{}
	var right []int
	if lettered {
		head = append(head, "")
	}
	head = append(head, "")
	for k, c := range columns {
		head = append(head, t.Paint(Bold, c.Head()))
		right = append(right, len(head))
		if d.values < 0 || k < d.values {
			head = append(head, "")
			right = append(right, len(head))
		}
		for _, one := range g.Contenders {
			f := g.Figure(one.ID, c)
			ratios = ratios || f != nil && f.VsBaseline != nil
		}
	}
	if d.features {
		head = append(head, t.Paint(Dim, "Policy"), t.Paint(Dim, "Encryption"))
	}
	tw := NewGrid(right...)
	tw.AppendHeader(head)
	for _, one := range g.Contenders {
		row := table.Row{}
		if lettered {
			row = append(row, t.Paint(Dim, layout.Letters(g.Figure(one.ID, columns[0]))))
		}
		name := t.Shorten(one.ID)
		if one.Baseline {
			name = t.Paint(Bold, name)
		}
		if !t.Held(one.ID) {
			name += "†"
		}
		row = append(row, name)
		for k, c := range columns {
			f := g.Figure(one.ID, c)
			valued := d.values < 0 || k < d.values
			switch {
			case f == nil:
				row = append(row, t.Paint(Dim, g.Absent(one, c)))
			case f.VsBaseline != nil:
				row = append(row, t.Paint(standingColor[layout.SideOfBaseline(f)], layout.Comparison(f.VsBaseline)+t.star(g, c, f)))
			case !valued:
				row = append(row, layout.Value(f))
			case one.Baseline && ratios:
				row = append(row, t.Paint(Dim, "1"))
			default:
				row = append(row, "")
			}
			if k > 0 && lettered && f != nil && layout.Letters(f) != "" {
				row[len(row)-1] = fmt.Sprint(row[len(row)-1]) + " " + t.Paint(Dim, layout.Letters(f))
			}
			if valued {
				row = append(row, t.figureCell(f))
			}
		}
		if d.features {
			row = append(row, t.Paint(Dim, t.feature(one, "policy")), t.Paint(Dim, t.feature(one, "encryption")))
		}
		tw.AppendRow(row)
	}
	return Lines(tw)
}

// figureCell returns the absolute figure, with the number of its rounds if some are missing.
func (t *Writer) figureCell(f *analysis.Result) string {
	if f == nil {
		return ""
	}
	s := layout.Value(f)
	all := f.Of
	if all == 0 { // a report of an older version
		all = t.Run.Rounds
	}
	if f.N < all {
		s += fmt.Sprintf(" (%d of %d)", f.N, all)
	}
	return t.Paint(Dim, s)
}

func (t *Writer) feature(c layout.Contender, need string) string {
	word := t.Capability(c.ID, need)
	if word == "" || word == "no" {
		return "–"
	}
	return text.SafeLine(word)
}

// farApart is the relative difference above which the ratio within rounds and the quotient
// of the medians disagree.
const farApart = 0.05

// star returns "*" for a ratio that disagrees with the quotient of the medians beside it.
func (t *Writer) star(g *layout.Group, c layout.Column, f *analysis.Result) string {
	base := g.Figure(t.Baseline, c)
	if base == nil || base.Median == 0 || f.VsBaseline.Step != "" {
		return ""
	}
	quotient := f.Median / base.Median
	if ratio := f.VsBaseline.Ratio; math.Abs(quotient/ratio-1) > farApart || (quotient-1)*(ratio-1) < 0 && math.Abs(quotient-ratio) > 0.01 {
		return "*"
	}
	return ""
}

// footnote explains the stars of a table.
func (t *Writer) footnote(g *layout.Group, columns []layout.Column) {
	for _, c := range columns {
		for _, one := range g.Contenders {
			if f := g.Figure(one.ID, c); f != nil && f.VsBaseline != nil && t.star(g, c, f) != "" {
				t.Wrap("", fmt.Sprintf("* Taken within each round; the medians alone, %s by %s, would give another ratio.", layout.Value(f), layout.Value(g.Figure(t.Baseline, c))), Dim)
				return
			}
		}
	}
}
