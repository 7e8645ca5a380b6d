package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/cnibench/cnibench/internal/report/layout"
)

// mdScales writes the tables of metrics by the number of Services.
func mdScales(w io.StringWriter, g *layout.Group, all []layout.Scale) {
	first := layout.FindTimed(g, all)
	for i, l := range all {
		for _, one := range l.Tables(g, i == first) {
			var b strings.Builder
			fmt.Fprintf(&b, "%s of %s (%s), by the number of other Services:\n\n| contender |", md(layout.MetricLabel(one.Metric)), md(l.Name()), md(l.About()))
			for _, h := range append(one.Head, l.Last()) {
				b.WriteString(" " + md(h) + " |")
			}
			b.WriteString("\n|---|" + strings.Repeat("---:|", len(one.Head)+1) + "\n")
			for _, r := range one.Rows {
				b.WriteString("| " + md(r.ID) + " |")
				for _, cell := range r.Cells {
					b.WriteString(" " + md(layout.ValueOr(cell)) + " |")
				}
				b.WriteString(" " + md(r.Grown) + " |\n")
			}
			if one.Metric == layout.SyncTime {
				b.WriteString("\nOf that table: " + md(layout.ProgrammedBy) + ".\n")
			}
			_, _ = w.WriteString(b.String() + "\n") // a bufio.Writer keeps its error until Flush
		}
	}
}

// bandMarks are the colours of bands as characters, because Markdown has no colours.
var bandMarks = map[string]string{"green": "🟢 ", "yellow": "🟡 ", "orange": "🟠 ", "red": "🔴 "}

// mdPictures writes the tables of the study's pictures.
func mdPictures(w *bufio.Writer, v *layout.View) {
	for i, p := range v.Pictures() {
		if i == 0 {
			fmt.Fprintf(w, "### Study %s: %s\n\n%s\n\n", md(v.Study.ID), md(v.Study.Title), md(v.Study.By))
		}
		fmt.Fprintf(w, "#### %s\n\n", md(p.Title))
		var rows [][]string
		for _, r := range p.Rows {
			row := []string{r.Name}
			for _, c := range r.Cells {
				row = append(row, strings.TrimSpace(bandMarks[c.Color]+c.Text+" "+c.Word))
			}
			rows = append(rows, row)
		}
		mdRows(w, append([]string{"contender"}, p.Head...), rows)
		fmt.Fprintf(w, "%s\n\n", md(strings.TrimSpace(p.Legend+" "+p.Note)))
	}
}

// mdPublished writes the table of published figures beside ours.
func mdPublished(w *bufio.Writer, v *layout.View) {
	if v.Published == nil {
		return
	}
	fmt.Fprintf(w, "### %s\n\n", layout.PublishedTitle)
	rows := v.PublishedRows()
	if len(rows) == 0 {
		fmt.Fprintf(w, "%s\n\n", md(layout.PublishedNone))
		return
	}
	if a := layout.Agreements(v.Report); len(a.Rows) > 0 {
		mdRows(w, a.Head, a.Rows)
		fmt.Fprintf(w, "%s\n\n", md(a.About))
		mdRows(w, a.Differences, a.Differ)
	}
	w.WriteString("| contender | step | metric | ours | theirs | study | its table |\n|---|---|---|---:|---:|---|---|\n")
	for _, f := range rows {
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s, as %s (%s) |\n", md(f.Contender), md(f.Step), md(layout.MetricLabel(f.Metric)),
			md(layout.Comparison(&f.Ours)), md(layout.PublishedRatio(f)), md(f.Study), md(f.Table), md(f.Name), md(f.Read))
	}
	fmt.Fprintf(w, "\n%s\n\n", md(layout.PublishedAbout))
}

// mdEfficiency writes a table for each step that has CPU by goodput.
func mdEfficiency(w *bufio.Writer, v *layout.View) {
	titled := false
	for i := range v.Groups {
		g := &v.Groups[i]
		for _, c := range v.CostsOf(g) {
			if !titled {
				w.WriteString("### Efficiency\n\n")
				titled = true
			}
			where := c.Step
			if len(v.Groups) > 1 {
				where += ", " + g.Title()
			}
			fmt.Fprintf(w, "%s\n\n", md(strings.Join(append([]string{where + "."}, c.About()...), " ")))
			var rows [][]string
			for i := range c.Rows {
				rows = append(rows, layout.CostCells(&c.Rows[i]))
			}
			mdRows(w, layout.CostHead, rows)
		}
	}
}

// mdList writes a list of n items below a heading, unless it is empty.
func mdList(w *bufio.Writer, head string, n int, item func(i int) string) {
	if n == 0 {
		return
	}
	w.WriteString(head + "\n\n")
	for i := range n {
		w.WriteString("- " + item(i) + "\n")
	}
	w.WriteString("\n")
}

// mdRows writes a table whose first column contains names.
func mdRows(w *bufio.Writer, head []string, rows [][]string) {
	for i, row := range append([][]string{head}, rows...) {
		w.WriteString("|")
		for _, cell := range row {
			fmt.Fprintf(w, " %s |", md(cell))
		}
		w.WriteString("\n")
		if i == 0 {
			w.WriteString("|---|" + strings.Repeat("---:|", len(head)-1) + "\n")
		}
	}
	w.WriteString("\n")
}
