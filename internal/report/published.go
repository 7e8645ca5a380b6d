package report

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/printable"
	"github.com/cnibench/cnibench/internal/unit"
)

const (
	publishedTitle = "Beside published figures"
	publishedLimit = " (link)" // marks what the study's link limited
	publishedNone  = "No published figure is of a contender, kind of step and metric of this run; docs/published.md has them all."
	publishedAbout = "Each × is a ratio to its own baseline: ours to this run's, a study's to the one on its machines. " +
		"A study's outside our interval says that the machines, versions or methods differ; docs/published.md has the sources and caveats. (link): the study's link was full, with the contender or on its baseline, and the ratio tells little of the contender."
)

// publishedRows are the figures by step and metric, in the order of the report.
func (v *view) publishedRows() []analysis.PublishedFigure {
	rows := slices.Clone(v.Published)
	place := map[string]int{}
	for i, s := range v.Steps {
		place[s.ID] = i
	}
	slices.SortStableFunc(rows, func(a, b analysis.PublishedFigure) int { return cmp.Compare(place[a.Step], place[b.Step]) })
	return rows
}

func publishedRatio(f analysis.PublishedFigure) string {
	if f.LineLimited {
		return unit.Ratio(f.Ratio) + "×" + publishedLimit
	}
	return unit.Ratio(f.Ratio) + "×"
}

// published prints the table behind the results; nothing where it was not
// asked for.
func (t *textWriter) published() {
	if t.Published == nil {
		return
	}
	t.line(t.paint(bold, publishedTitle))
	rows := t.publishedRows()
	if len(rows) == 0 {
		t.wrap("", publishedNone, "")
		t.line("")
		return
	}
	tw := table.NewWriter()
	tw.SetStyle(table.Style{
		Box:     table.BoxStyle{MiddleHorizontal: "─", PaddingRight: "  "},
		Format:  table.FormatOptions{Header: text.FormatDefault, Row: text.FormatDefault},
		Options: table.Options{SeparateHeader: true},
	})
	tw.SetColumnConfigs([]table.ColumnConfig{
		{Number: 3, Align: text.AlignRight, AlignHeader: text.AlignRight}, {Number: 4, Align: text.AlignRight, AlignHeader: text.AlignRight},
	})
	tw.AppendHeader(table.Row{t.paint(bold, "Figure"), t.paint(bold, "Contender"), t.paint(bold, "Ours"), t.paint(bold, "Theirs"), t.paint(bold, "Study")})
	last := ""
	for _, f := range rows {
		figure := t.short(f.Step) + " " + metricLabel(f.Metric)
		if figure == last {
			figure = ""
		} else {
			last = figure
		}
		tw.AppendRow(table.Row{figure, t.short(f.Contender), comparison(&f.Ours), publishedRatio(f), t.paint(dim, printable.Line(f.Study))})
	}
	t.rendered(tw)
	t.wrap("", publishedAbout, dim)
	t.line("")
}

// rendered prints a table without blanks at the ends of lines.
func (t *textWriter) rendered(tw table.Writer) {
	for _, line := range strings.Split(tw.Render(), "\n") {
		t.line(strings.TrimRight(line, " "))
	}
}

// mdPublished writes the table behind the results.
func mdPublished(w *bufio.Writer, v *view) {
	if v.Published == nil {
		return
	}
	fmt.Fprintf(w, "### %s\n\n", publishedTitle)
	rows := v.publishedRows()
	if len(rows) == 0 {
		fmt.Fprintf(w, "%s\n\n", md(publishedNone))
		return
	}
	w.WriteString("| contender | step | metric | ours | theirs | study | its table |\n|---|---|---|---:|---:|---|---|\n")
	for _, f := range rows {
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s, as %s (%s) |\n", md(f.Contender), md(f.Step), md(metricLabel(f.Metric)),
			md(comparison(&f.Ours)), md(publishedRatio(f)), md(f.Study), md(f.Table), md(f.Name), md(f.Read))
	}
	fmt.Fprintf(w, "\n%s\n\n", md(publishedAbout))
}
