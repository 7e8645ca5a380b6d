package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/cnibench/cnibench/internal/analysis/compare"
	"github.com/cnibench/cnibench/internal/printable"
)

// shownRows is how many rows a comparison may have before those that show no
// change are only counted.
const shownRows = 24

func writeCompareText(w io.Writer, c *compare.Comparison, opt Options) error {
	t := newTextWriter(opt)
	t.wrapAfter(t.paint(bold, "old  "), 5, printable.Line(runText(&c.Old)))
	t.wrapAfter(t.paint(bold, "new  "), 5, printable.Line(runText(&c.New)))
	t.line("")
	if gate := GateText(c); gate != "" {
		style, mark := green, "✓ "
		switch {
		case !*c.Passed:
			style, mark = red, "✗ "
		case c.Unable > 0:
			style, mark = yellow, "! "
		}
		t.wrap("", mark+gate, style)
		t.line("")
	}
	t.changes(c)
	places := placesOf(c)
	t.listing("Broken", len(c.Faults), func(i int) (string, string) {
		if c.Faults[i].Failed {
			return t.paint(red, "✗ "), faultText(c.Faults[i])
		}
		return "  ", faultText(c.Faults[i])
	})
	t.listing("Measured in one run only", len(c.Missing), func(i int) (string, string) {
		if c.Missing[i].Failed {
			return t.paint(red, "✗ "), missingText(c.Missing[i], places)
		}
		return "  ", missingText(c.Missing[i], places)
	})
	t.listing("The runs differ in what matters", len(c.Differences), func(i int) (string, string) {
		return "  ", text.Snip(differenceText(c.Differences[i]), maxFinding, "…")
	})
	t.listing("To know", len(c.Notes), func(i int) (string, string) { return "  ", c.Notes[i] })
	for _, s := range compareLegend(c) {
		t.wrap("", s, dim)
	}
	_, err := w.Write(t.Bytes())
	return err
}

// listing prints a headed list, if it has anything.
func (t *textWriter) listing(head string, n int, item func(i int) (lead, text string)) {
	if n == 0 {
		return
	}
	t.line(t.paint(bold, head))
	for i := range n {
		lead, s := item(i)
		t.wrapAfter(lead, 2, printable.Line(s))
	}
	t.line("")
}

func (t *textWriter) changes(c *compare.Comparison) {
	tw := table.NewWriter()
	tw.SetStyle(table.Style{
		Box:     table.BoxStyle{MiddleHorizontal: "─", PaddingRight: strings.Repeat(" ", columnGap)},
		Format:  table.FormatOptions{Header: text.FormatDefault, Row: text.FormatDefault},
		Options: table.Options{SeparateHeader: true},
	})
	var configs []table.ColumnConfig
	for n := 4; n <= 6; n++ {
		configs = append(configs, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	tw.SetColumnConfigs(configs)
	tw.AppendHeader(table.Row{"Change", "Contender, step", "Metric", "Old", "New", "New by old"})
	places, left := placesOf(c), 0
	for i := range c.Changes {
		change := &c.Changes[i]
		if len(c.Changes) > shownRows && quiet(change, c.FailOn) {
			left++
			continue
		}
		s := signOf(change, c.FailOn)
		tw.AppendRow(table.Row{
			t.paint(s.style, s.mark+" "+s.word),
			t.short(places.contender(change.Contender, change.Part, change.Underlay, change.Kernel)) + " " + t.paint(dim, t.short(change.Step)),
			metricLabel(change.Metric),
			places.side(change, change.Old), places.side(change, change.New), t.paint(s.style, ratio(change)),
		})
	}
	if left < len(c.Changes) {
		for _, line := range strings.Split(tw.Render(), "\n") {
			t.line(strings.TrimRight(line, " "))
		}
	}
	if left > 0 {
		t.wrap("", fmt.Sprintf("%s without a change that can be told; --format md and json list them", plural(left, "figure")), dim)
	}
	t.line("")
}
