// Package terminal writes a report as text: sentences and tables no wider than
// the terminal, with colours where it has them. What is said is decided in
// package layout. Next: Report, below.
package terminal

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	pretty "github.com/jedib0t/go-pretty/v6/text"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/text"
)

const (
	MaxWidth      = 100 // sentences of more columns than this are harder to read, not easier
	maxRoom       = 140 // tables may take more
	minWidth      = 40
	columnGap     = 2
	MaxText       = 300 // characters of a difference between runs; the other formats have all of it
	shownFindings = 4   // the page has all
)

// manual is where the page with the method is found.
const manual = "https://github.com/cnibench/cnibench/blob/main/docs/statistics.md"

type Writer struct {
	bytes.Buffer
	*layout.View
	color, wide bool
	Width, room int // of sentences and of tables, columns
}

// Screen is what is known of the terminal.
type Screen struct {
	Color bool // escape codes
	Width int  // columns; 0 means 100
	Wide  bool // tables of every step below the first ones
}

func New(opt Screen) *Writer {
	t := &Writer{color: opt.Color, wide: opt.Wide, Width: MaxWidth, room: MaxWidth}
	if opt.Width > 0 {
		t.Width, t.room = max(minWidth, min(opt.Width, MaxWidth)), max(minWidth, min(opt.Width, maxRoom))
	}
	return t
}

// Report writes r as text. r may be the report of a run that still goes on.
func Report(w io.Writer, r *analysis.Report, opt Screen) error {
	t := New(opt)
	t.View = layout.New(r)
	for i, s := range t.FirstScreen() {
		style := ""
		if i == 0 {
			style = Bold
		}
		t.Wrap("", text.SafeLine(s), style)
	}
	t.Line("")
	t.header()
	for i := range t.Groups {
		t.group(&t.Groups[i])
	}
	switch {
	case len(t.Groups) > 0 && !t.wide && !slices.ContainsFunc(t.Groups, func(g layout.Group) bool { return len(layout.Headline(&g, t.Steps)) > 0 }):
		t.Wrap("", "No step has a goodput, a rate or a latency. What there is stands in the tables of every step: --wide.", Bold)
		t.Line("")
	case len(t.Groups) > 0:
		t.shortLegend()
	}
	t.pictures()
	t.printPublished()
	t.findings()
	t.printUnsupported()
	_, err := w.Write(t.Bytes())
	return err
}

func (t *Writer) header() {
	about := fmt.Sprintf("Suite %s, arena %s, %s, run %s, %s", t.Run.Suite, t.Run.Arena, t.RoundsTaken(), t.Run.ID, t.Run.Started.UTC().Format("2006-01-02 15:04 MST"))
	if len(t.Groups) == 1 && t.Groups[0].Title() != "" {
		about += ", " + t.Groups[0].Title()
	}
	if nodes := t.Run.Environment.Nodes(); nodes != nil {
		about += ", between " + analysis.AndList(nodes)
	}
	if mode := t.Plan.Settings["offload"]; mode != "" { // decides what a packet is
		about += ", --offload " + mode
	}
	t.Wrap("", text.SafeLine(about), Dim)
	t.Line("")
}

func (t *Writer) group(g *layout.Group) {
	if len(t.Groups) > 1 {
		t.Wrap("", text.SafeLine(g.Title()), Bold)
	}
	head := layout.Headline(g, t.Steps)
	scales := t.Scales()
	t.headTables(g, head)
	t.anotherRun(g)
	t.byServices(g, scales)
	if t.wide {
		t.tables(g, layout.Further(g, t.StepsOutside(scales), head))
		t.certainty(g, head)
	}
}

// certainty prints what causes most of the error of the first tables' figures, and how many
// rounds would tell the closest contenders apart.
func (t *Writer) certainty(g *layout.Group, head []layout.Column) {
	lines := g.Certainty(head)
	if len(lines) == 0 {
		return
	}
	t.Line(t.Paint(Bold, "How certain"))
	for _, s := range lines {
		t.WrapAfter("  ", 2, text.SafeLine(s))
	}
	t.Line("")
}

// shortLegend says in two lines how to read the tables, and where the rest is.
func (t *Writer) shortLegend() {
	how := "paired by round"
	if t.Run.Unpaired {
		how = "of all rounds to all of the baseline's"
	}
	interval := "its interval"
	if percent := t.Confidence(); percent != "" {
		interval = "its " + percent + " interval for this run"
	}
	t.Wrap("", fmt.Sprintf("× is the ratio to %s, %s, with %s; the figure beside it is the median.", text.SafeLine(t.Baseline), how, interval), Dim)
	letters := "Letters compare contenders with each other (a is best; one letter: not told apart, corrected for all pairs), intervals compare with " + text.SafeLine(t.Baseline) + ". "
	if !slices.ContainsFunc(t.Results, func(r analysis.Result) bool { return len(r.Letters) > 0 }) {
		letters = "There are too few rounds for groups. "
	}
	for _, one := range t.Contenders {
		if !t.Held(one.ID) {
			t.Wrap("", "† "+layout.HeldNote, Dim)
			break
		}
	}
	if note := t.FewRounds(); note != "" {
		letters += note + " "
	}
	hint := ""
	if !t.wide {
		hint = "Every step: --wide. "
	}
	t.Wrap("", letters+hint, Dim)
	if bare := t.BareCluster(); bare != "" {
		t.Wrap("", bare, Dim)
	}
	link := manual
	if len(link) > t.Width {
		link = "docs/statistics.md"
	}
	t.Line(t.Paint(Dim, link))
	t.Line("")
}

// tables prints the sets of columns, and descriptions of their steps.
func (t *Writer) tables(g *layout.Group, sets [][]layout.Column) {
	names := 0
	for _, c := range g.Contenders {
		names = max(names, pretty.StringWidthWithoutEscSequences(t.Shorten(c.ID)))
	}
	widthOf := func(c layout.Column) int {
		w := 0
		for _, row := range t.columnCells(g, c) {
			w = max(w, pretty.LongestLineLen(row))
		}
		return w + columnGap
	}
	for _, columns := range layout.Pack(sets, t.Width-names-columnGap, widthOf) {
		t.table(g, columns)
		for _, s := range layout.StepsOf(t.Steps, columns) {
			if about := layout.Describe(s); about != "" {
				t.Wrap("  ", text.SafeLine(s.ID)+": "+text.SafeLine(about), Dim)
			}
		}
		t.Line("")
	}
}

func (t *Writer) table(g *layout.Group, columns []layout.Column) {
	tw := NewGrid(ButFirst(len(columns) + 1)...)
	rows := make([]table.Row, len(g.Contenders)+1)
	rows[0] = table.Row{""}
	for i, c := range g.Contenders {
		rows[i+1] = table.Row{t.Shorten(c.ID)}
		if c.Baseline {
			rows[i+1] = table.Row{t.Paint(Bold, t.Shorten(c.ID)) + "\n" + t.Paint(Dim, "baseline")}
		}
	}
	for _, c := range columns {
		for i, cell := range t.columnCells(g, c) {
			rows[i] = append(rows[i], cell)
		}
	}
	tw.AppendHeader(rows[0])
	tw.AppendRows(rows[1:])
	t.Grid(tw)
}

// Shorten shortens a name so that the figures have room.
func (t *Writer) Shorten(name string) string {
	name, room := text.SafeLine(name), max(12, t.Width/4)
	if pretty.StringWidthWithoutEscSequences(name) <= room {
		return name
	}
	end := []rune(name)
	for pretty.StringWidthWithoutEscSequences(string(end)) > room/2 {
		end = end[1:]
	}
	return pretty.Snip(name, room-room/2, "…") + string(end)
}

// columnCells returns the header and a cell for each contender: value and letters in the
// first line, ratio and interval in the second.
func (t *Writer) columnCells(g *layout.Group, c layout.Column) []string {
	width := 0
	for _, contender := range g.Contenders {
		width = max(width, len(layout.Letters(g.Figure(contender.ID, c))))
	}
	cells := []string{t.Paint(Bold, c.Head()) + "\n" + t.Paint(Dim, t.Shorten(c.Step))}
	for _, contender := range g.Contenders {
		r := g.Figure(contender.ID, c)
		if r == nil {
			cells = append(cells, t.Paint(Dim, g.Absent(contender, c)))
			continue
		}
		first := layout.Value(r)
		if width > 0 {
			first += " " + t.Paint(Dim, pretty.Pad(layout.Letters(r), width, ' '))
		}
		if r.VsBaseline != nil {
			first += "\n" + t.Paint(standingColor[layout.SideOfBaseline(r)], layout.Comparison(r.VsBaseline))
		}
		cells = append(cells, first)
	}
	return cells
}

// findings prints the findings of most weight, each with its next step. None is cut off.
func (t *Writer) findings() {
	list := t.TopFindings()
	if len(t.Findings) == 0 {
		return
	}
	t.Line(t.Paint(Bold, "Findings"))
	for _, f := range list[:min(len(list), shownFindings)] {
		t.WrapAfter(t.Paint(severityColor[f.Severity], pretty.Pad(text.SafeLine(f.Severity), 6, ' ')), 6, text.SafeLine(layout.FindingLine(&f)))
		if f.Next != "" {
			t.WrapAfter("      "+t.Paint(Dim, "→ "), 8, text.SafeLine(f.Next))
		}
	}
	if len(t.Findings) > min(len(list), shownFindings) {
		t.WrapAfter("      ", 6, t.Paint(Dim, fmt.Sprintf("All %d findings are on the page and in --format json.", len(t.Findings))))
	}
	t.Line("")
}

func (t *Writer) printUnsupported() {
	unables := t.Unables()
	if len(unables) == 0 {
		return
	}
	t.Line(t.Paint(Bold, "Not run here") + t.Paint(Dim, fmt.Sprintf(" (%s)", t.Absent())))
	seen := map[string]bool{}
	for _, u := range unables {
		if seen[u.Reason] {
			continue
		}
		seen[u.Reason] = true
		t.Wrap("", text.SafeLine(u.Reason), "")
		for _, same := range unables {
			if same.Reason == u.Reason {
				t.WrapAfter("  ", 8, text.SafeLine(strings.Join(same.Contenders, ", "))+arrow(same.Remedy))
			}
		}
	}
	t.Line("")
}

// arrow returns an arrow and the remedy; "" without a remedy.
func arrow(remedy string) string {
	if remedy == "" {
		return ""
	}
	return " → " + text.SafeLine(remedy)
}

func (t *Writer) Line(s string) {
	t.WriteString(s)
	t.WriteByte('\n')
}

// Wrap prints s within the width, with the indent before every line.
func (t *Writer) Wrap(indent, s, style string) {
	for _, line := range t.Lines(s, t.Width-len(indent)) {
		t.Line(indent + t.Paint(style, line))
	}
}

// WrapAfter prints s after lead, which is columns wide. Further lines are indented as far.
func (t *Writer) WrapAfter(lead string, columns int, s string) {
	for _, line := range t.Lines(s, t.Width-columns) {
		t.Line(strings.TrimRight(lead+line, " "))
		lead = strings.Repeat(" ", columns)
	}
}

func (t *Writer) Lines(s string, width int) []string {
	lines := strings.Split(strings.TrimRight(pretty.WrapSoft(s, width), "\n "), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// The styles, as the parameters of ANSI's "select graphic rendition".
const (
	Bold   = "1"
	Dim    = "2"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
)

var (
	standingColor = map[string]string{"better": Green, "worse": Red}
	severityColor = map[string]string{"error": Red, "warn": Yellow, "info": Dim}
)

func (t *Writer) Paint(style, s string) string {
	if !t.color || style == "" || s == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

// PrintList prints a list with a head, if the list is not empty.
func (t *Writer) PrintList(head string, n int, item func(i int) (lead, text string)) {
	if n == 0 {
		return
	}
	t.Line(t.Paint(Bold, head))
	for i := range n {
		lead, s := item(i)
		t.WrapAfter(lead, 2, text.SafeLine(s))
	}
	t.Line("")
}
