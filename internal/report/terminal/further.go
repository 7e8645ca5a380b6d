package terminal

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	pretty "github.com/jedib0t/go-pretty/v6/text"

	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/text"
)

// This file prints the tables below the first ones: Services, published figures.

// byServices prints a table for each metric of each scale.
func (t *Writer) byServices(g *layout.Group, all []layout.Scale) {
	first := layout.FindTimed(g, all)
	for i, l := range all {
		for _, one := range l.Tables(g, i == first) {
			head := table.Row{t.Paint(Bold, layout.MetricLabel(one.Metric))}
			for _, h := range append(one.Head, l.Last()) {
				head = append(head, t.Paint(Bold, h))
			}
			tw := NewGrid(ButFirst(len(head))...)
			tw.AppendHeader(head)
			for _, r := range one.Rows {
				row := table.Row{t.Shorten(r.ID)}
				for _, cell := range r.Cells {
					row = append(row, layout.ValueOr(cell))
				}
				tw.AppendRow(append(row, r.Grown))
			}
			t.Grid(tw)
			about := l.About() + "; columns: other Services"
			if one.Metric == layout.SyncTime {
				about = "time to program the step's Service and that many others on every node, from none; " + layout.ProgrammedBy
			}
			t.Wrap("  ", text.SafeLine(l.Name())+": "+text.SafeLine(about), Dim)
			t.Line("")
		}
	}
}

// anotherRun prints where the ratios of the first tables would lie in another run.
func (t *Writer) anotherRun(g *layout.Group) {
	other := t.AnotherRun(g)
	if other == nil {
		return
	}
	t.Line(t.Paint(Bold, other.Title))
	tw := NewGrid(ButFirst(len(other.Head))...)
	t.fill(tw, other.Head, other.Rows, func(column int, cell string) string {
		if column == 0 {
			cell = t.Shorten(cell)
		}
		return cell
	})
	t.Wrap("", text.SafeLine(other.About), Dim)
	t.Line("")
}

// printPublished prints the table of published figures, if it was asked for.
func (t *Writer) printPublished() {
	if t.Published == nil {
		return
	}
	t.Line(t.Paint(Bold, layout.PublishedTitle))
	rows := t.PublishedRows()
	if len(rows) == 0 {
		t.Wrap("", layout.PublishedNone, "")
		t.Line("")
		return
	}
	if t.agreements(); len(rows) > maxPublished && !t.wide {
		t.Wrap("", fmt.Sprintf("All %d figures beside the studies': --wide.", len(rows)), Dim)
		t.Line("")
		return
	}
	tw := NewGrid(3, 4)
	tw.AppendHeader(table.Row{t.Paint(Bold, "Figure"), t.Paint(Bold, "Contender"), t.Paint(Bold, "Ours"), t.Paint(Bold, "Theirs"), t.Paint(Bold, "Study")})
	last := ""
	for _, f := range rows {
		figure := t.Shorten(f.Step) + " " + layout.MetricLabel(f.Metric)
		if figure == last {
			figure = ""
		} else {
			last = figure
		}
		tw.AppendRow(table.Row{figure, t.Shorten(f.Contender), layout.Comparison(&f.Ours), layout.PublishedRatio(f), t.Paint(Dim, text.SafeLine(f.Study))})
	}
	t.Grid(tw)
	t.Wrap("", layout.PublishedAbout, Dim)
	t.Line("")
}

// maxPublished is how many published figures are shown without being asked for.
const maxPublished = 24

// agreements prints how far the order of contenders agrees with that of studies, and the
// differences in conditions.
func (t *Writer) agreements() {
	a := layout.Agreements(t.View.Report)
	if len(a.Rows) == 0 {
		return
	}
	t.rows(a.Head, a.Rows)
	t.Wrap("", a.About, Dim)
	t.Line("")
	if len(a.Differ) > 0 {
		t.rows(a.Differences, a.Differ)
		t.Line("")
	}
}

// rows prints a table of texts, the last column wrapped.
func (t *Writer) rows(head []string, rows [][]string) {
	tw := NewGrid()
	const last = 56
	tw.SetColumnConfigs([]table.ColumnConfig{{Number: len(head) - 1, WidthMax: last, WidthMaxEnforcer: pretty.WrapSoft}, {Number: len(head), WidthMax: last, WidthMaxEnforcer: pretty.WrapSoft}})
	t.fill(tw, head, rows, func(_ int, cell string) string { return text.SafeLine(cell) })
}

// fill prints a table of texts. show returns a cell as it is shown.
func (t *Writer) fill(tw table.Writer, head []string, rows [][]string, show func(column int, cell string) string) {
	line := func(cells []string, style func(string) string) (row table.Row) {
		for i, c := range cells {
			row = append(row, style(show(i, c)))
		}
		return row
	}
	tw.AppendHeader(line(head, func(c string) string { return t.Paint(Bold, c) }))
	for _, cells := range rows {
		tw.AppendRow(line(cells, func(c string) string { return c }))
	}
	t.Grid(tw)
}
