package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/text"
)

func writeMarkdown(w io.Writer, r *analysis.Report, _ Options) error {
	v := layout.New(r)
	bw := bufio.NewWriter(w)
	fmt.Fprintf(bw, "## cnibench: suite %s against %s\n\n", md(r.Run.Suite), md(r.Baseline))
	fmt.Fprintf(bw, "Run %s, arena %s, %s, %s", md(r.Run.ID), md(r.Run.Arena), v.RoundsTaken(), r.Run.Started.UTC().Format("2006-01-02 15:04 MST"))
	if nodes := r.Run.Environment.Nodes(); nodes != nil {
		fmt.Fprintf(bw, ", between %s", md(analysis.AndList(nodes)))
	}
	bw.WriteString(".\n\n")
	for _, s := range v.FirstScreen() {
		fmt.Fprintf(bw, "- %s\n", md(s))
	}
	bw.WriteString("\n")
	for i := range v.Groups {
		g := &v.Groups[i]
		if title := g.Title(); title != "" {
			fmt.Fprintf(bw, "### %s\n\n", md(title))
		}
		head := layout.Headline(g, v.Steps)
		if len(head) > 0 {
			mdTable(bw, v, g, head)
		}
		mdAnotherRun(bw, v, g)
		scales := v.Scales()
		mdScales(bw, g, scales)
		for _, columns := range layout.Further(g, v.StepsOutside(scales), head) {
			mdTable(bw, v, g, columns)
		}
	}
	if len(v.Groups) > 0 {
		bw.WriteString(md(strings.Join(v.Legend(), " ")) + "\n\n")
	}
	mdPictures(bw, v)
	mdPublished(bw, v)
	mdEfficiency(bw, v)
	if len(v.Findings) > 0 {
		bw.WriteString("### Findings\n\n| severity | where | what | next |\n|---|---|---|---|\n")
		for _, f := range layout.BySeverity(v.Findings) {
			what := md(f.Text)
			if f.Excluded {
				what += " (not ranked)"
			}
			fmt.Fprintf(bw, "| %s | %s | %s | %s |\n", md(f.Severity), md(f.Where()), what, md(f.Next))
		}
		bw.WriteString("\n")
	}
	if len(v.Unsupported) > 0 {
		bw.WriteString("### Not run here\n\n| contenders | reason | remedy |\n|---|---|---|\n")
		for _, u := range v.Unables() {
			fmt.Fprintf(bw, "| %s | %s | %s |\n", md(strings.Join(u.Contenders, ", ")), md(u.Reason), md(u.Remedy))
		}
		bw.WriteString("\n")
	}
	return bw.Flush()
}

func mdTable(w *bufio.Writer, v *layout.View, g *layout.Group, columns []layout.Column) {
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
			w.WriteString(" " + mdCell(g.Figure(contender.ID, c), g.Absent(contender, c)) + " |")
		}
		w.WriteString("\n")
	}
	w.WriteString("\n")
	for _, s := range layout.StepsOf(v.Steps, columns) {
		if about := layout.Describe(s); about != "" {
			fmt.Fprintf(w, "- %s: %s\n", md(s.ID), md(about))
		}
	}
	w.WriteString("\n")
}

// mdAnotherRun writes where the ratios of the first table would lie in another run.
func mdAnotherRun(w *bufio.Writer, v *layout.View, g *layout.Group) {
	other := v.AnotherRun(g)
	if other == nil {
		return
	}
	fmt.Fprintf(w, "**%s**\n\n", other.Title)
	for i, cells := range append([][]string{other.Head}, other.Rows...) {
		for _, c := range cells {
			w.WriteString("| " + md(c) + " ")
		}
		w.WriteString("|\n")
		if i == 0 {
			w.WriteString("|---|" + strings.Repeat("---:|", len(cells)-1) + "\n")
		}
	}
	fmt.Fprintf(w, "\n%s\n\n", md(other.About))
}

func mdCell(r *analysis.Result, absent string) string {
	if r == nil {
		return absent
	}
	cell := strings.TrimSpace(md(layout.Value(r)) + " " + layout.Letters(r))
	if r.VsBaseline != nil {
		cell += "<br>" + md(layout.Comparison(r.VsBaseline))
	}
	return cell
}

// mdSpecial is the punctuation that has a meaning in GitHub's Markdown.
const mdSpecial = "\\`*_{}[]<>#|~!&$@"

// md escapes text that comes from data, so that it contains no markup, does not end a cell
// or a line, and no address in it becomes a link.
func md(s string) string {
	var b strings.Builder
	s = text.SafeLine(s)
	for i, r := range s {
		if strings.ContainsRune(mdSpecial, r) || strings.HasPrefix(s[i:], "://") {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return strings.ReplaceAll(b.String(), "www.", `www\.`)
}
