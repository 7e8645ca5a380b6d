package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/printable"
)

func writeMarkdown(w io.Writer, r *analysis.Report, _ Options) error {
	v := newView(r)
	bw := bufio.NewWriter(w)
	fmt.Fprintf(bw, "## cnibench: suite %s against %s\n\n", md(r.Run.Suite), md(r.Baseline))
	fmt.Fprintf(bw, "Run %s, arena %s, %s, %s.\n\n", md(r.Run.ID), md(r.Run.Arena), plural(r.Run.Rounds, "round"), r.Run.Started.UTC().Format("2006-01-02 15:04 MST"))
	for i := range v.Groups {
		g := &v.Groups[i]
		if title := g.title(); title != "" {
			fmt.Fprintf(bw, "### %s\n\n", md(title))
		}
		head := headline(g, v.Steps)
		if len(head) > 0 {
			mdTable(bw, v, g, head)
		}
		scales := v.scales()
		mdScales(bw, g, scales)
		for _, columns := range further(g, v.apartFrom(scales), head) {
			mdTable(bw, v, g, columns)
		}
	}
	if len(v.Groups) > 0 {
		bw.WriteString(md(strings.Join(v.legend(), " ")) + "\n\n")
	}
	mdPublished(bw, v)
	mdEfficiency(bw, v)
	mdFleet(bw, v)
	if len(v.Findings) > 0 {
		bw.WriteString("### Findings\n\n| severity | where | what | next |\n|---|---|---|---|\n")
		for _, f := range bySeverity(v.Findings) {
			what := md(f.Text)
			if f.Excluded {
				what += " (not ranked)"
			}
			fmt.Fprintf(bw, "| %s | %s | %s | %s |\n", md(f.Severity), md(place(f)), what, md(f.Next))
		}
		bw.WriteString("\n")
	}
	if len(v.Unsupported) > 0 {
		bw.WriteString("### Not run here\n\n| contenders | reason | remedy |\n|---|---|---|\n")
		for _, u := range v.unables() {
			fmt.Fprintf(bw, "| %s | %s | %s |\n", md(strings.Join(u.Contenders, ", ")), md(u.Reason), md(u.Remedy))
		}
		bw.WriteString("\n")
	}
	return bw.Flush()
}

func mdTable(w *bufio.Writer, v *view, g *group, columns []column) {
	w.WriteString("| contender |")
	for _, c := range columns {
		fmt.Fprintf(w, " %s<br>%s |", md(c.Head()), md(c.Step))
	}
	w.WriteString("\n|---|" + strings.Repeat("---:|", len(columns)) + "\n")
	for _, contender := range g.Contenders {
		w.WriteString("| " + md(contender.ID))
		if contender.Baseline {
			w.WriteString("<br>baseline")
		}
		w.WriteString(" |")
		for _, c := range columns {
			w.WriteString(" " + mdCell(g.figure(contender.ID, c), g.absent(contender, c)) + " |")
		}
		w.WriteString("\n")
	}
	w.WriteString("\n")
	for _, s := range stepsOf(v.Steps, columns) {
		if about := describe(s); about != "" {
			fmt.Fprintf(w, "- %s: %s\n", md(s.ID), md(about))
		}
	}
	w.WriteString("\n")
}

// mdEfficiency is a table for each step that has CPU by goodput.
func mdEfficiency(w *bufio.Writer, v *view) {
	said := false
	for i := range v.Groups {
		g := &v.Groups[i]
		for _, c := range v.costsOf(g) {
			if !said {
				w.WriteString("### Efficiency\n\n")
				said = true
			}
			where := c.step
			if len(v.Groups) > 1 {
				where += ", " + g.title()
			}
			fmt.Fprintf(w, "%s\n\n", md(strings.Join(append([]string{where + "."}, c.about()...), " ")))
			var rows [][]string
			for _, e := range c.rows {
				rows = append(rows, costCells(e))
			}
			mdRows(w, costHead, rows)
		}
	}
	if basis := v.energyBasis(); said && basis != "" {
		fmt.Fprintf(w, "%s\n\n", md(basis))
	}
}

func mdFleet(w *bufio.Writer, v *view) {
	if v.Fleet == nil {
		return
	}
	fmt.Fprintf(w, "### %s\n\n", md(v.fleetTitle()))
	if head, rows := v.fleetTable(); len(rows) > 0 {
		mdRows(w, head, rows)
	}
	fmt.Fprintf(w, "%s\n\n", md(strings.Join(v.fleetNotes(), " ")))
}

// mdRows is a table whose first column holds names.
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

func mdCell(r *analysis.Result, absent string) string {
	if r == nil {
		return absent
	}
	cell := strings.TrimSpace(md(value(r)) + " " + letters(r))
	if r.VsBaseline != nil {
		cell += "<br>" + md(comparison(r.VsBaseline))
	}
	return cell
}

// mdSpecial is the punctuation that GitHub's Markdown gives a meaning to.
const mdSpecial = "\\`*_{}[]<>#|~!&$@"

// md escapes text from data: no markup, no cell or line end, no links made of
// bare addresses.
func md(s string) string {
	var b strings.Builder
	s = printable.Line(s)
	for i, r := range s {
		if strings.ContainsRune(mdSpecial, r) || strings.HasPrefix(s[i:], "://") {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return strings.ReplaceAll(b.String(), "www.", `www\.`)
}
