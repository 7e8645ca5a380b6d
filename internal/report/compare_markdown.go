package report

import (
	"bufio"
	"fmt"
	"io"

	"github.com/cnibench/cnibench/internal/analysis/compare"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/unit"
)

// writeCompareMarkdown writes a comment for a pull request: the outcome and
// what changed first, the rest folded.
func writeCompareMarkdown(w io.Writer, c *compare.Comparison, _ Options) error {
	bw := bufio.NewWriter(w)
	head := "### cnibench: two runs compared"
	if c.Passed != nil {
		mark := "✅"
		switch {
		case !*c.Passed:
			mark = "❌"
		case c.Unable > 0:
			mark = "⚠️"
		}
		head = "### " + mark + " cnibench: " + md(GateText(c))
	}
	fmt.Fprintf(bw, "%s\n\n- old: %s\n- new: %s\n", head, md(runText(&c.Old)), md(runText(&c.New)))
	for _, s := range c.Notes {
		fmt.Fprintf(bw, "- %s\n", md(s))
	}
	bw.WriteString("\n")
	var listed, folded []*compare.Change
	for i := range c.Changes {
		if change := &c.Changes[i]; uninformative(change, c.FailOn) {
			folded = append(folded, change)
		} else {
			listed = append(listed, change)
		}
	}
	places := placesOf(c)
	if len(listed) == 0 {
		fmt.Fprintf(bw, "No change can be told in %s.\n\n", unit.Plural(len(c.Changes), "figure"))
	}
	mdChanges(bw, listed, places, c.FailOn)
	mark := map[bool]string{true: "❌ "} // of what fails the gate
	mdList(bw, "Broken:", len(c.Faults), func(i int) string { return mark[c.Faults[i].Failed] + md(faultText(c.Faults[i])) })
	mdList(bw, "Measured in one run only:", len(c.Missing), func(i int) string { return mark[c.Missing[i].Failed] + md(missingText(c.Missing[i], places)) })
	mdList(bw, "The runs differ in what matters:", len(c.Differences), func(i int) string { return md(differenceText(c.Differences[i])) })
	if len(folded) > 0 {
		fmt.Fprintf(bw, "<details><summary>%s without a change that can be told</summary>\n\n", unit.Plural(len(folded), "figure"))
		mdChanges(bw, folded, places, c.FailOn)
		bw.WriteString("</details>\n\n")
	}
	legend := compareLegend(c)
	mdList(bw, "<details><summary>How to read it</summary>", len(legend), func(i int) string { return md(legend[i]) })
	bw.WriteString("</details>\n")
	return bw.Flush()
}

func mdChanges(w *bufio.Writer, changes []*compare.Change, places comparePlaces, failOn *float64) {
	if len(changes) == 0 {
		return
	}
	w.WriteString("| change | contender | step | metric | old | new | new by old | p, adjusted |\n|---|---|---|---|---:|---:|---:|---:|\n")
	for _, c := range changes {
		s := signOf(c, failOn)
		fmt.Fprintf(w, "| %s %s | %s | %s | %s | %s | %s | %s | %s |\n", s.mark, s.word,
			md(places.contender(c.Contender, c.Underlay, c.Kernel)), md(c.Step), md(layout.MetricLabel(c.Metric)),
			md(places.side(c, c.Old)), md(places.side(c, c.New)), md(ratio(c)), pText(c.PAdjusted))
	}
	w.WriteString("\n")
}

// pText returns a p-value with two digits.
func pText(p *float64) string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("%.2g", *p)
}
