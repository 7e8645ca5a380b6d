package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/printable"
	"github.com/cnibench/cnibench/internal/unit"
)

const (
	maxWidth    = 100 // sentences of more columns than this are harder to read, not easier
	maxRoom     = 140 // tables may take more
	minWidth    = 40
	columnGap   = 2
	maxFinding  = 300 // characters of a finding; the other formats have all of it
	shownCauses = 3   // causes of findings; the page has all
)

// manual is where the page with the method is found.
const manual = "https://github.com/cnibench/cnibench/blob/main/docs/statistics.md"

type textWriter struct {
	bytes.Buffer
	*view
	color, wide bool
	width, room int // of sentences and of tables, columns
}

func newTextWriter(opt Options) *textWriter {
	t := &textWriter{color: opt.Color, wide: opt.Wide, width: maxWidth, room: maxWidth}
	if opt.Width > 0 {
		t.width, t.room = max(minWidth, min(opt.Width, maxWidth)), max(minWidth, min(opt.Width, maxRoom))
	}
	return t
}

// writeText is a pure function from the analysis to text, for a run that still goes on
// as for a whole one.
func writeText(w io.Writer, r *analysis.Report, opt Options) error {
	t := newTextWriter(opt)
	t.view = newView(r)
	for i, s := range t.answer() {
		style := ""
		if i == 0 {
			style = bold
		}
		t.wrap("", printable.Line(s), style)
	}
	t.line("")
	t.header()
	for i := range t.Groups {
		t.group(&t.Groups[i])
	}
	if len(t.Groups) > 0 {
		t.shortLegend()
	}
	t.advice()
	t.fleet()
	t.published()
	t.findings()
	t.unsupported()
	_, err := w.Write(t.Bytes())
	return err
}

func (t *textWriter) header() {
	about := fmt.Sprintf("Suite %s, arena %s, %s, run %s, %s", t.Run.Suite, t.Run.Arena, plural(t.Run.Rounds, "round"), t.Run.ID, t.Run.Started.UTC().Format("2006-01-02 15:04 MST"))
	if len(t.Groups) == 1 && t.Groups[0].title() != "" {
		about += ", " + t.Groups[0].title()
	}
	if mode := t.Plan.Settings["offload"]; mode != "" { // decides what a packet is
		about += ", --offload " + mode
	}
	t.wrap("", printable.Line(about), dim)
	t.line("")
}

func (t *textWriter) group(g *group) {
	if len(t.Groups) > 1 {
		t.wrap("", printable.Line(g.title()), bold)
	}
	head := headline(g, t.Steps)
	scales := t.scales()
	t.headTables(g, head)
	t.byServices(g, scales)
	if t.wide {
		t.tables(g, further(g, t.apartFrom(scales), head))
	}
}

// shortLegend says in two lines how to read the tables, and where the rest is.
func (t *textWriter) shortLegend() {
	how := "paired by round"
	if t.Run.Unpaired {
		how = "of all rounds to all of the baseline's"
	}
	t.wrap("", fmt.Sprintf("× is the ratio to %s, %s, with its interval; the figure beside it is the median.", printable.Line(t.Baseline), how), dim)
	letters := "Letters: contenders that share one cannot be told apart; a is best. "
	if !slices.ContainsFunc(t.Results, func(r analysis.Result) bool { return len(r.Groups) > 0 }) {
		letters = "The rounds are too few for groups. "
	}
	more := ""
	if !t.wide {
		more = "Every step: --wide. "
	}
	t.wrap("", letters+more, dim)
	link := manual
	if len(link) > t.width {
		link = "docs/statistics.md"
	}
	t.line(t.paint(dim, link))
	t.line("")
}

// advice is the choice in three lines: for no need, with policy, with encryption.
func (t *textWriter) advice() {
	lines := t.adviceLines()
	if len(lines) == 0 {
		return
	}
	t.line(t.paint(bold, "Choice"))
	for _, s := range lines {
		t.wrapAfter("  ", 2, printable.Line(s))
	}
	t.line("")
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

// findings prints the gravest causes, a line for each.
func (t *textWriter) findings() {
	causes := t.causes()
	if len(t.Findings) == 0 {
		return
	}
	t.line(t.paint(bold, "Findings"))
	for _, c := range causes[:min(len(causes), shownCauses)] {
		t.wrapAfter(t.paint(severityColor[c.severity], text.Pad(printable.Line(c.severity), 6, ' ')), 6, text.Snip(c.line(), maxFinding, "…"))
	}
	if rest := len(t.Findings) - shown(causes); rest > 0 {
		t.wrapAfter("      ", 6, t.paint(dim, fmt.Sprintf("All %d findings are on the page and in --format json.", len(t.Findings))))
	}
	t.line("")
}

// shown counts the findings that the printed causes tell whole.
func shown(causes []cause) int {
	n := 0
	for _, c := range causes[:min(len(causes), shownCauses)] {
		if len(c.findings) == 1 {
			n++
		}
	}
	return n
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
