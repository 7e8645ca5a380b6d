package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/printable"
	"github.com/cnibench/cnibench/internal/unit"
)

const (
	maxWidth     = 100 // more columns than this are harder to read, not easier
	minWidth     = 40
	columnGap    = 2
	maxFinding   = 400 // characters of a finding; the other formats have all of it
	shownPerCode = 4   // findings of one code that are told in full; of more, two are
	shownInfos   = 12  // findings of level info; of more, one of each code is told
)

type textWriter struct {
	bytes.Buffer
	*view
	color bool
	width int
	said  map[string]bool // next steps of findings
}

func writeText(w io.Writer, r *analysis.Report, opt Options) error {
	t := &textWriter{view: newView(r), color: opt.Color, width: maxWidth, said: map[string]bool{}}
	if opt.Width > 0 {
		t.width = max(minWidth, min(opt.Width, maxWidth))
	}
	t.header()
	for i := range t.Groups {
		t.group(&t.Groups[i])
	}
	if len(t.Groups) == 0 {
		t.wrap("", "No valid sample: there is nothing to compare. The findings say why.", "")
		t.line("")
	} else {
		for _, s := range t.legend() {
			t.wrap("", s, dim)
		}
		t.line("")
	}
	t.costs()
	t.fleet()
	t.published()
	t.findings()
	t.unsupported()
	_, err := w.Write(t.Bytes())
	return err
}

func (t *textWriter) header() {
	t.wrap("", fmt.Sprintf("cnibench, suite %s, arena %s, %s against %s", printable.Line(t.Run.Suite), printable.Line(t.Run.Arena),
		plural(t.Run.Rounds, "round"), printable.Line(t.Baseline)), bold)
	about := "run " + printable.Line(t.Run.ID) + ", " + t.Run.Started.UTC().Format("2006-01-02 15:04 MST")
	if mode := t.Plan.Settings["offload"]; mode != "" { // decides what a packet is
		about += ", --offload " + printable.Line(mode)
	}
	t.wrap("", about, dim)
	t.line("")
}

func (t *textWriter) group(g *group) {
	t.wrap("", printable.Line(g.title()), bold)
	head := headline(g, t.Steps)
	scales := t.scales()
	sets := further(g, t.apartFrom(scales), head)
	if len(head) > 0 {
		t.tables(g, [][]column{head})
	}
	t.byServices(g, scales)
	t.tables(g, sets)
}

// tables prints the column sets and what their steps are.
func (t *textWriter) tables(g *group, sets [][]column) {
	names := 0
	for _, c := range g.Contenders {
		names = max(names, text.StringWidthWithoutEscSequences(t.short(c.ID)))
	}
	widthOf := func(c column) int {
		w := 0
		for _, row := range t.columnCells(g, c) {
			w = max(w, text.LongestLineLen(row))
		}
		return w + columnGap
	}
	for _, columns := range pack(sets, t.width-names-columnGap, widthOf) {
		t.table(g, columns)
		for _, s := range stepsOf(t.Steps, columns) {
			if about := describe(s); about != "" {
				t.wrap("  ", printable.Line(s.ID)+": "+printable.Line(about), dim)
			}
		}
		t.line("")
	}
}

// newGrid is a table with a line under its head and no others.
func newGrid() table.Writer {
	tw := table.NewWriter()
	tw.SetStyle(table.Style{
		Box:    table.BoxStyle{MiddleHorizontal: "─", PaddingRight: strings.Repeat(" ", columnGap)},
		Format: table.FormatOptions{Header: text.FormatDefault, Row: text.FormatDefault},
		Options: table.Options{
			SeparateHeader: true,
		},
	})
	return tw
}

func (t *textWriter) table(g *group, columns []column) {
	tw := newGrid()
	rows := make([]table.Row, len(g.Contenders)+1)
	rows[0] = table.Row{""}
	for i, c := range g.Contenders {
		rows[i+1] = table.Row{t.short(c.ID)}
		if c.Baseline {
			rows[i+1] = table.Row{t.paint(bold, t.short(c.ID)) + "\n" + t.paint(dim, "baseline")}
		}
	}
	configs := []table.ColumnConfig{}
	for n, c := range columns {
		for i, cell := range t.columnCells(g, c) {
			rows[i] = append(rows[i], cell)
		}
		configs = append(configs, table.ColumnConfig{Number: n + 2, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	tw.SetColumnConfigs(configs)
	tw.AppendHeader(rows[0])
	tw.AppendRows(rows[1:])
	t.rendered(tw)
}

// short is a name that leaves the figures their room.
func (t *textWriter) short(name string) string {
	return text.Snip(printable.Line(name), max(12, t.width/4), "…")
}

// columnCells are the header and one cell per contender: above the value and
// its letters, below the ratio and its interval.
func (t *textWriter) columnCells(g *group, c column) []string {
	width := 0
	for _, contender := range g.Contenders {
		width = max(width, len(letters(g.figure(contender.ID, c))))
	}
	cells := []string{t.paint(bold, c.Head()) + "\n" + t.paint(dim, t.short(c.Step))}
	for _, contender := range g.Contenders {
		r := g.figure(contender.ID, c)
		if r == nil {
			cells = append(cells, t.paint(dim, g.absent(contender, c)))
			continue
		}
		first := value(r)
		if width > 0 {
			first += " " + t.paint(dim, text.Pad(letters(r), width, ' '))
		}
		if r.VsBaseline != nil {
			first += "\n" + t.paint(standingColor[standing(r)], comparison(r.VsBaseline))
		}
		cells = append(cells, first)
	}
	return cells
}

func (t *textWriter) findings() {
	if len(t.Findings) == 0 {
		return
	}
	t.line(t.paint(bold, "Findings"))
	told, notes := apart(t.Findings)
	kinds, infos := kindsOf(told)
	for _, kind := range kinds {
		shown := len(kind)
		switch {
		case kind[0].Severity == "info" && infos > shownInfos:
			shown = 1
		case len(kind) > shownPerCode:
			shown = 2
		}
		for _, f := range kind[:shown] {
			t.finding(f)
		}
		if rest := len(kind) - shown; rest > 0 {
			t.wrapAfter("      ", 6, fmt.Sprintf("… and %d more of this kind (%s); the HTML and JSON reports list all", rest, printable.Line(kind[0].Code)))
		}
	}
	for _, f := range notes[:min(len(notes), shownInfos)] {
		t.note(f)
	}
	if rest := len(notes) - shownInfos; rest > 0 {
		t.wrapAfter("      ", 6, fmt.Sprintf("… and %s; the HTML and JSON reports list all", plural(rest, "more note")))
	}
	t.line("")
}

// note is one entry of at most two lines: how something was measured explains
// the figures and asks for nothing.
func (t *textWriter) note(f analysis.Finding) {
	width := t.width - 6
	lines := t.lines(printable.Line(f.Text), width)
	if len(lines) > 2 {
		lines = []string{lines[0], text.Snip(lines[1]+" "+lines[2], width, "…")}
		if !strings.HasSuffix(lines[1], "…") {
			lines[1] = text.Snip(lines[1], width-2, "") + " …"
		}
	}
	lead := t.paint(severityColor[f.Severity], text.Pad(printable.Line(f.Severity), 6, ' '))
	for _, line := range lines {
		t.line(strings.TrimRight(lead+line, " "))
		lead = strings.Repeat(" ", 6)
	}
}

func (t *textWriter) finding(f analysis.Finding) {
	what := printable.Line(f.Text)
	if where := place(f); where != "" {
		what = printable.Line(where) + ": " + what
	}
	what = text.Snip(what, maxFinding, "…")
	if f.Excluded {
		what += " (not ranked)"
	}
	t.wrapAfter(t.paint(severityColor[f.Severity], text.Pad(printable.Line(f.Severity), 6, ' ')), 6, what)
	if f.Next != "" && !t.said[f.Next] { // once is enough
		t.said[f.Next] = true
		t.wrapAfter("      "+t.paint(dim, "→ "), 8, printable.Line(f.Next))
	}
}

func (t *textWriter) unsupported() {
	unables := t.unables()
	if len(unables) == 0 {
		return
	}
	t.line(t.paint(bold, "Not run here") + t.paint(dim, fmt.Sprintf(" (%s)", t.absent())))
	seen := map[string]bool{}
	for _, u := range unables {
		if seen[u.Reason] {
			continue
		}
		seen[u.Reason] = true
		t.wrap("", printable.Line(u.Reason), "")
		for _, same := range unables {
			if same.Reason == u.Reason {
				t.wrapAfter("  ", 8, printable.Line(strings.Join(same.Contenders, ", "))+arrow(same.Remedy))
			}
		}
	}
	t.line("")
}

// absent counts the contenders that ran no step at all, and the single steps
// of others: "2 contenders, 4 steps of others".
func (v *view) absent() string {
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
		return plural(whole, "contender")
	case whole == 0:
		return plural(steps, "step")
	}
	return plural(whole, "contender") + ", " + plural(steps, "step") + " of others"
}

// arrow leads to a remedy, if there is one.
func arrow(remedy string) string {
	if remedy == "" {
		return ""
	}
	return " → " + printable.Line(remedy)
}

func (t *textWriter) line(s string) {
	t.WriteString(s)
	t.WriteByte('\n')
}

// wrap prints s within the width, every line behind the indent.
func (t *textWriter) wrap(indent, s, style string) {
	for _, line := range t.lines(s, t.width-len(indent)) {
		t.line(indent + t.paint(style, line))
	}
}

// wrapAfter prints s behind lead, which takes the given columns; further lines
// are indented as far.
func (t *textWriter) wrapAfter(lead string, columns int, s string) {
	for _, line := range t.lines(s, t.width-columns) {
		t.line(strings.TrimRight(lead+line, " "))
		lead = strings.Repeat(" ", columns)
	}
}

func (t *textWriter) lines(s string, width int) []string {
	lines := strings.Split(strings.TrimRight(text.WrapSoft(s, width), "\n "), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// The styles, as the parameters of ANSI's "select graphic rendition".
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

var (
	standingColor = map[string]string{"better": green, "worse": red}
	severityColor = map[string]string{"error": red, "warn": yellow, "info": dim}
)

func (t *textWriter) paint(style, s string) string {
	if !t.color || style == "" || s == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

var plural = unit.Plural
