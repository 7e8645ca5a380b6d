package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	pretty "github.com/jedib0t/go-pretty/v6/text"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/report/terminal"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/unit"
)

// RecommendFormats returns the names for WriteRecommendation, in the order of listings.
func RecommendFormats() []string {
	return []string{string(Text), string(Markdown), string(JSON)}
}

// WriteRecommendation writes a recommendation in the named format. Errors:
// *text.UnknownError for an unknown format, else those of w.
func WriteRecommendation(w io.Writer, format string, r *analysis.Recommendation, opt Options) error {
	switch Format(format) {
	case Text:
		return writeRecommendText(w, r, opt)
	case Markdown:
		return writeRecommendMarkdown(w, r)
	case JSON:
		return encodeJSON(w, r)
	}
	return text.Unknown("format", format, RecommendFormats())
}

func writeRecommendText(w io.Writer, r *analysis.Recommendation, opt Options) error {
	t := terminal.New(opt.screen())
	t.Wrap("", text.SafeLine(layout.FirmnessText(r)), terminal.Bold)
	if s := IgnoredText(r); s != "" {
		t.Wrap("", s, terminal.Yellow)
	}
	if r.Elsewhere != "" {
		t.Wrap("", text.SafeLine(r.Elsewhere), "")
	}
	t.Wrap("", "needed: "+layout.NameNeeds(r)+"; run "+text.SafeLine(r.Run), terminal.Dim)
	t.Line("")
	for i, list := range append([]analysis.Recommendation{*r}, r.Others...) {
		if len(r.Others) > 0 {
			t.Wrap("", text.SafeLine(layout.ListTitle(&list)), terminal.Bold)
		}
		if i > 0 {
			t.Wrap("", text.SafeLine(layout.FirmnessText(&list)), "")
		}
		if len(list.Ranked) == 0 {
			continue
		}
		terms := writeChoices(t, &list)
		for i, c := range list.Ranked {
			if reasons := append(terms[i], c.Reasons...); len(reasons) > 0 {
				writeReasons(t, text.SafeLine(c.Contender), text.SafeLine(strings.Join(reasons, "; ")))
			}
		}
		t.Line("")
	}
	for _, part := range []struct {
		head string
		list []analysis.Loss
	}{{"Ruled out by a need", r.Lost}, {"Not known", r.Unknown}} {
		groups := layout.GroupLosses(part.list)
		t.PrintList(part.head, len(groups), func(i int) (string, string) {
			return "  ", groups[i].Head() + ": " + strings.Join(groups[i].Contenders, ", ")
		})
	}
	t.PrintList("To know", len(r.Notes), func(i int) (string, string) { return "  ", r.Notes[i] })
	if len(r.Ranked) > 0 {
		for _, s := range layout.RecommendLegend(r) {
			t.Wrap("", s, terminal.Dim)
		}
	}
	_, err := w.Write(t.Bytes())
	return err
}

// writeReasons prints a contender's name, followed by the reasons s.
func writeReasons(t *terminal.Writer, name, s string) {
	for i, line := range t.Lines(name+" "+s, t.Width-4) {
		switch rest, whole := strings.CutPrefix(line, name); {
		case i > 0:
			t.Line("    " + line)
		case whole:
			t.Line("  " + t.Paint(terminal.Bold, name) + rest)
		default: // a name that had to be broken
			t.Line("  " + line)
		}
	}
}

// writeChoices prints the ranking with a column for each criterion. If that is too wide for
// the terminal, it leaves these columns out, and returns the criteria of each choice as
// texts.
func writeChoices(t *terminal.Writer, r *analysis.Recommendation) [][]string {
	lines, texts := choiceLines(t, r, true), make([][]string, len(r.Ranked))
	if slices.ContainsFunc(lines, func(s string) bool { return pretty.StringWidthWithoutEscSequences(s) > t.Width }) {
		lines = choiceLines(t, r, false)
		for i, c := range r.Ranked {
			var terms []string
			for _, term := range c.Terms {
				terms = append(terms, term.Criterion+" "+unit.Ratio(term.Ratio)+"×")
			}
			texts[i] = []string{strings.Join(terms, ", ")}
		}
	}
	for _, line := range lines {
		t.Line(line)
	}
	return texts
}

func choiceLines(t *terminal.Writer, r *analysis.Recommendation, criteria bool) []string {
	header := table.Row{"", "Score"}
	for _, w := range r.Weights {
		if criteria {
			header = append(header, w.Criterion)
		}
	}
	tw := terminal.NewGrid(terminal.ButFirst(len(header))...)
	tw.AppendHeader(header)
	for i, c := range r.Ranked {
		row := table.Row{fmt.Sprintf("%d. %s", i+1, t.Shorten(c.Contender)), t.Paint(terminal.Bold, layout.WithInterval(c.Score, c.CI))}
		for _, term := range c.Terms {
			if criteria {
				row = append(row, unit.Ratio(term.Ratio)+"×")
			}
		}
		tw.AppendRow(row)
	}
	return terminal.Lines(tw)
}

func writeRecommendMarkdown(w io.Writer, r *analysis.Recommendation) error {
	bw := bufio.NewWriter(w)
	fmt.Fprintf(bw, "### %s\n\n", md(layout.FirmnessText(r)))
	if s := IgnoredText(r); s != "" {
		fmt.Fprintf(bw, "**%s**\n\n", md(s))
	}
	if r.Elsewhere != "" {
		fmt.Fprintf(bw, "%s\n\n", md(r.Elsewhere))
	}
	fmt.Fprintf(bw, "Needed: %s. Run %s.\n\n", md(layout.NameNeeds(r)), md(r.Run))
	for _, list := range append([]analysis.Recommendation{*r}, r.Others...) {
		if len(r.Others) > 0 {
			fmt.Fprintf(bw, "**%s**\n\n", md(layout.ListTitle(&list)))
		}
		if len(list.Ranked) == 0 {
			continue
		}
		bw.WriteString("| | contender | score |")
		for _, weight := range list.Weights {
			fmt.Fprintf(bw, " %s |", md(weight.Criterion))
		}
		bw.WriteString(" why |\n|---:|---|---:|" + strings.Repeat("---:|", len(list.Weights)) + "---|\n")
		for i, c := range list.Ranked {
			fmt.Fprintf(bw, "| %d | %s | %s |", i+1, md(c.Contender), md(layout.WithInterval(c.Score, c.CI)))
			for _, term := range c.Terms {
				fmt.Fprintf(bw, " %s |", md(layout.WithInterval(term.Ratio, term.CI)))
			}
			fmt.Fprintf(bw, " %s |\n", md(strings.Join(c.Reasons, "; ")))
		}
		bw.WriteString("\n")
	}
	for _, part := range []struct {
		head string
		list []analysis.Loss
	}{{"Ruled out by a need:", r.Lost}, {"Not known:", r.Unknown}} {
		groups := layout.GroupLosses(part.list)
		mdList(bw, part.head, len(groups), func(i int) string { return md(groups[i].Head()) + ": " + md(strings.Join(groups[i].Contenders, ", ")) })
	}
	bw.WriteString("To know:\n\n")
	for _, s := range append(slices.Clone(r.Notes), layout.RecommendLegend(r)...) {
		fmt.Fprintf(bw, "- %s\n", md(s))
	}
	return bw.Flush()
}

// IgnoredText names, in a sentence, the criteria with a weight for which the run has no
// figures; "" if there are none.
func IgnoredText(r *analysis.Recommendation) string {
	switch len(r.Ignored) {
	case 0:
		return ""
	case 1:
		return r.Ignored[0] + " does not count, though it was given weight: the run has no figure of it"
	}
	return analysis.AndList(r.Ignored) + " do not count, though they were given weight: the run has no figure of them"
}
