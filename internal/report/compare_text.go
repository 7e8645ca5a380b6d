package report

import (
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	pretty "github.com/jedib0t/go-pretty/v6/text"

	"github.com/cnibench/cnibench/internal/analysis/compare"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/report/terminal"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/unit"
)

// shownRows is the number of rows up to which a comparison also lists figures without a
// known change. Beyond, they are only counted.
const shownRows = 24

func writeCompareText(w io.Writer, c *compare.Comparison, opt Options) error {
	t := terminal.New(opt.screen())
	t.WrapAfter(t.Paint(terminal.Bold, "old  "), 5, text.SafeLine(runText(&c.Old)))
	t.WrapAfter(t.Paint(terminal.Bold, "new  "), 5, text.SafeLine(runText(&c.New)))
	t.Line("")
	if gate := GateText(c); gate != "" {
		style, mark := terminal.Green, "✓ "
		switch {
		case !*c.Passed:
			style, mark = terminal.Red, "✗ "
		case c.Unable > 0:
			style, mark = terminal.Yellow, "! "
		}
		t.Wrap("", mark+gate, style)
		t.Line("")
	}
	writeChanges(t, c)
	places := placesOf(c)
	t.PrintList("Broken", len(c.Faults), func(i int) (string, string) {
		if c.Faults[i].Failed {
			return t.Paint(terminal.Red, "✗ "), faultText(c.Faults[i])
		}
		return "  ", faultText(c.Faults[i])
	})
	t.PrintList("Measured in one run only", len(c.Missing), func(i int) (string, string) {
		if c.Missing[i].Failed {
			return t.Paint(terminal.Red, "✗ "), missingText(c.Missing[i], places)
		}
		return "  ", missingText(c.Missing[i], places)
	})
	t.PrintList("The runs differ in what matters", len(c.Differences), func(i int) (string, string) {
		return "  ", pretty.Snip(differenceText(c.Differences[i]), terminal.MaxText, "…")
	})
	t.PrintList("To know", len(c.Notes), func(i int) (string, string) { return "  ", c.Notes[i] })
	for _, s := range compareLegend(c) {
		t.Wrap("", s, terminal.Dim)
	}
	_, err := w.Write(t.Bytes())
	return err
}

func writeChanges(t *terminal.Writer, c *compare.Comparison) {
	tw := terminal.NewGrid(4, 5, 6)
	tw.AppendHeader(table.Row{"Change", "Contender, step", "Metric", "Old", "New", "New by old"})
	places, left := placesOf(c), 0
	for i := range c.Changes {
		change := &c.Changes[i]
		if len(c.Changes) > shownRows && uninformative(change, c.FailOn) {
			left++
			continue
		}
		s := signOf(change, c.FailOn)
		tw.AppendRow(table.Row{
			t.Paint(s.style, s.mark+" "+s.word),
			t.Shorten(places.contender(change.Contender, change.Underlay, change.Kernel)) + " " + t.Paint(terminal.Dim, t.Shorten(change.Step)),
			layout.MetricLabel(change.Metric),
			places.side(change, change.Old), places.side(change, change.New), t.Paint(s.style, ratio(change)),
		})
	}
	if left < len(c.Changes) {
		t.Grid(tw)
	}
	if left > 0 {
		t.Wrap("", fmt.Sprintf("%s without a change that can be told; --format md and json list them", unit.Plural(left, "figure")), terminal.Dim)
	}
	t.Line("")
}
