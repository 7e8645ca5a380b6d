package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/nearest"
	"github.com/cnibench/cnibench/internal/printable"
	"github.com/cnibench/cnibench/internal/unit"
)

// RecommendFormats are the names that WriteRecommendation takes, in the order
// of listings.
func RecommendFormats() []string {
	return []string{string(Text), string(Markdown), string(JSON)}
}

// WriteRecommendation writes a recommendation in the named format. Errors:
// *nearest.Error for an unknown format, else those of w.
func WriteRecommendation(w io.Writer, format string, r *analysis.Recommendation, opt Options) error {
	switch Format(format) {
	case Text:
		return writeRecommendText(w, r, opt)
	case Markdown:
		return writeRecommendMarkdown(w, r)
	case JSON:
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	return nearest.Unknown("format", format, RecommendFormats())
}

// firmnessText is the outcome in one sentence.
func firmnessText(r *analysis.Recommendation) string {
	if len(r.Ranked) == 0 {
		return "none of the measured contenders meets every need and has every figure"
	}
	first := r.Ranked[0]
	often := wins(&first)
	switch r.Firmness {
	case analysis.Alike:
		return named(r.Alike) + ": as good as each other"
	case analysis.Firm:
		if i := slices.IndexFunc(first.Terms, func(t analysis.Term) bool { return t.CI == nil }); i >= 0 {
			return fmt.Sprintf("%s: first in %s of the resamples, but its %s has too few rounds for an interval", first.Contender, often, first.Terms[i].Criterion)
		}
		return fmt.Sprintf("%s, and firmly: first in %s of the resamples", first.Contender, often)
	case analysis.Leaning:
		return fmt.Sprintf("leaning to %s: first in %s of the resamples, %s follows", first.Contender, often, r.Ranked[1].Contender)
	case analysis.TossUp:
		if len(r.Alike) > 1 {
			return fmt.Sprintf("a toss-up between %s; more rounds, or other weights, decide", named(r.Alike))
		}
		return fmt.Sprintf("a toss-up: %s comes first in only %s of the resamples; more rounds, or other weights, decide", first.Contender, often)
	case analysis.Alone:
		return first.Contender + ", the only measured one that meets every need"
	}
	if len(r.Alike) > 1 {
		return named(r.Alike) + ": as good as each other, but the rounds are too few to say how firmly"
	}
	return first.Contender + ", but the rounds are too few to say how firmly"
}

// listTitle says where the contenders of a list were measured.
func listTitle(r *analysis.Recommendation) string {
	return (&group{site: site{r.Part, r.Kernel, r.Underlay}, Emulated: r.Emulated}).title()
}

// IgnoredText names the criteria that were given weight and of which the run
// has no figures, in a sentence; "" where there are none.
func IgnoredText(r *analysis.Recommendation) string {
	switch len(r.Ignored) {
	case 0:
		return ""
	case 1:
		return r.Ignored[0] + " does not count, though it was given weight: the run has no figure of it"
	}
	return named(r.Ignored) + " do not count, though they were given weight: the run has no figure of them"
}

// named are names in a sentence: "a, b and c".
func named(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// roundShare is v to the nearest percent.
func roundShare(v float64) float64 { return float64(int(v*100+0.5)) / 100 }

// recommendLegend says how to read the list.
func recommendLegend(r *analysis.Recommendation) []string {
	var weights []string
	for _, w := range r.Weights {
		weights = append(weights, fmt.Sprintf("%s=%g", w.Criterion, w.Weight))
	}
	lines := []string{
		fmt.Sprintf("Each figure is the ratio to %s, turned so that more is better; the score is their geometric mean, weighted %s.", r.Baseline, strings.Join(weights, ", ")),
	}
	if r.Firmness != analysis.Untested {
		lines = append(lines, fmt.Sprintf("In brackets the interval of %s confidence; first is how often a contender comes first if the rounds are drawn anew %d times, which those within 2 %% of the best share.",
			percentOf(r.Confidence), r.Resamples))
	}
	return append(lines, "It knows these rounds only: another machine may choose otherwise.")
}

// asked are the needs without the one that is always there.
func asked(r *analysis.Recommendation) string {
	needs := slices.DeleteFunc(slices.Clone(r.Needs), func(n string) bool { return slices.Contains(analysis.AlwaysNeeded(), n) })
	if len(needs) == 0 {
		return "nothing (--need policy,encryption,…)"
	}
	return strings.Join(needs, ", ")
}

// losses are contenders that are out for want of one need, or for one reason.
type losses struct {
	Need       string
	Reason     string // "" where each has its own
	Contenders []string
}

// groupLosses gathers by need and source; what was not measured, by reason.
func groupLosses(list []analysis.Loss) []losses {
	var order []analysis.Loss // the first of each group
	groups := map[int][]analysis.Loss{}
	for _, l := range list {
		i := slices.IndexFunc(order, func(o analysis.Loss) bool {
			return o.Need == l.Need && o.Source == l.Source && (l.Source != "catalogue" && l.Need != "" || o.Reason == l.Reason)
		})
		if i < 0 {
			order = append(order, l)
			i = len(order) - 1
		}
		groups[i] = append(groups[i], l)
	}
	var out []losses
	for i, first := range order {
		g := losses{Need: first.Need, Reason: first.Reason}
		if slices.ContainsFunc(groups[i], func(l analysis.Loss) bool { return l.Reason != first.Reason }) {
			g.Reason = ""
		}
		for _, l := range groups[i] {
			name := l.Contender
			if g.Reason == "" {
				name += " (" + l.Reason + ")"
			}
			g.Contenders = append(g.Contenders, name)
		}
		out = append(out, g)
	}
	return out
}

func (l losses) head() string {
	switch {
	case l.Need == "":
		return l.Reason
	case l.Reason == "":
		return l.Need
	}
	return l.Need + ": " + l.Reason
}

// wins is how often a choice came first, where that tells anything.
func wins(c *analysis.Choice) string {
	if c.Wins == nil {
		return unit.Missing
	}
	return percentOf(roundShare(*c.Wins))
}

func withInterval(ratio float64, ci *analysis.Interval) string {
	return comparison(&analysis.Comparison{Ratio: ratio, CI: ci})
}

func writeRecommendText(w io.Writer, r *analysis.Recommendation, opt Options) error {
	t := newTextWriter(opt)
	t.wrap("", printable.Line(firmnessText(r)), bold)
	if s := IgnoredText(r); s != "" {
		t.wrap("", s, yellow)
	}
	t.wrap("", "needed: "+asked(r)+"; run "+printable.Line(r.Run), dim)
	t.line("")
	for i, list := range append([]analysis.Recommendation{*r}, r.Apart...) {
		if len(r.Apart) > 0 {
			t.wrap("", printable.Line(listTitle(&list)), bold)
		}
		if i > 0 {
			t.wrap("", printable.Line(firmnessText(&list)), "")
		}
		if len(list.Ranked) == 0 {
			continue
		}
		said := t.choices(&list)
		for i, c := range list.Ranked {
			if reasons := append(said[i], c.Reasons...); len(reasons) > 0 {
				t.reasons(printable.Line(c.Contender), printable.Line(strings.Join(reasons, "; ")))
			}
		}
		t.line("")
	}
	for _, part := range []struct {
		head string
		list []analysis.Loss
	}{{"Out, for want of a need", r.Lost}, {"Not known", r.Unknown}} {
		groups := groupLosses(part.list)
		t.listing(part.head, len(groups), func(i int) (string, string) {
			return "  ", groups[i].head() + ": " + strings.Join(groups[i].Contenders, ", ")
		})
	}
	t.listing("To know", len(r.Notes), func(i int) (string, string) { return "  ", r.Notes[i] })
	if len(r.Ranked) > 0 {
		for _, s := range recommendLegend(r) {
			t.wrap("", s, dim)
		}
	}
	_, err := w.Write(t.Bytes())
	return err
}

// reasons prints what there is to say of a contender behind its name.
func (t *textWriter) reasons(name, s string) {
	for i, line := range t.lines(name+" "+s, t.width-4) {
		switch rest, whole := strings.CutPrefix(line, name); {
		case i > 0:
			t.line("    " + line)
		case whole:
			t.line("  " + t.paint(bold, name) + rest)
		default: // a name that had to be broken
			t.line("  " + line)
		}
	}
}

// choices prints the ranking with a column for each criterion. Where that is
// too wide for the page, it returns the criteria of each choice in words
// instead.
func (t *textWriter) choices(r *analysis.Recommendation) [][]string {
	lines, said := t.choiceLines(r, true), make([][]string, len(r.Ranked))
	if slices.ContainsFunc(lines, func(s string) bool { return text.StringWidthWithoutEscSequences(s) > t.width }) {
		lines = t.choiceLines(r, false)
		for i, c := range r.Ranked {
			var terms []string
			for _, term := range c.Terms {
				terms = append(terms, term.Criterion+" "+unit.Ratio(term.Ratio)+"×")
			}
			said[i] = []string{strings.Join(terms, ", ")}
		}
	}
	for _, line := range lines {
		t.line(line)
	}
	return said
}

func (t *textWriter) choiceLines(r *analysis.Recommendation, criteria bool) []string {
	tw := table.NewWriter()
	tw.SetStyle(table.Style{
		Box:     table.BoxStyle{MiddleHorizontal: "─", PaddingRight: strings.Repeat(" ", columnGap)},
		Format:  table.FormatOptions{Header: text.FormatDefault, Row: text.FormatDefault},
		Options: table.Options{SeparateHeader: true},
	})
	header := table.Row{"", "Score", "First"}
	for _, w := range r.Weights {
		if criteria {
			header = append(header, w.Criterion)
		}
	}
	configs := make([]table.ColumnConfig, len(header))
	for n := range configs {
		configs[n] = table.ColumnConfig{Number: n + 2, Align: text.AlignRight, AlignHeader: text.AlignRight}
	}
	tw.SetColumnConfigs(configs)
	tw.AppendHeader(header)
	for i, c := range r.Ranked {
		row := table.Row{fmt.Sprintf("%d. %s", i+1, t.short(c.Contender)), t.paint(bold, withInterval(c.Score, c.CI)), wins(&c)}
		for _, term := range c.Terms {
			if criteria {
				row = append(row, unit.Ratio(term.Ratio)+"×")
			}
		}
		tw.AppendRow(row)
	}
	lines := strings.Split(tw.Render(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

func writeRecommendMarkdown(w io.Writer, r *analysis.Recommendation) error {
	bw := bufio.NewWriter(w)
	fmt.Fprintf(bw, "### %s\n\n", md(firmnessText(r)))
	if s := IgnoredText(r); s != "" {
		fmt.Fprintf(bw, "**%s**\n\n", md(s))
	}
	fmt.Fprintf(bw, "Needed: %s. Run %s.\n\n", md(asked(r)), md(r.Run))
	for _, list := range append([]analysis.Recommendation{*r}, r.Apart...) {
		if len(r.Apart) > 0 {
			fmt.Fprintf(bw, "**%s**\n\n", md(listTitle(&list)))
		}
		if len(list.Ranked) == 0 {
			continue
		}
		bw.WriteString("| | contender | score | first |")
		for _, weight := range list.Weights {
			fmt.Fprintf(bw, " %s |", md(weight.Criterion))
		}
		bw.WriteString(" why |\n|---:|---|---:|---:|" + strings.Repeat("---:|", len(list.Weights)) + "---|\n")
		for i, c := range list.Ranked {
			fmt.Fprintf(bw, "| %d | %s | %s | %s |", i+1, md(c.Contender), md(withInterval(c.Score, c.CI)), wins(&c))
			for _, term := range c.Terms {
				fmt.Fprintf(bw, " %s |", md(withInterval(term.Ratio, term.CI)))
			}
			fmt.Fprintf(bw, " %s |\n", md(strings.Join(c.Reasons, "; ")))
		}
		bw.WriteString("\n")
	}
	for _, part := range []struct {
		head string
		list []analysis.Loss
	}{{"Out, for want of a need:", r.Lost}, {"Not known:", r.Unknown}} {
		if len(part.list) == 0 {
			continue
		}
		bw.WriteString(part.head + "\n\n")
		for _, l := range groupLosses(part.list) {
			fmt.Fprintf(bw, "- %s: %s\n", md(l.head()), md(strings.Join(l.Contenders, ", ")))
		}
		bw.WriteString("\n")
	}
	bw.WriteString("To know:\n\n")
	for _, s := range append(slices.Clone(r.Notes), recommendLegend(r)...) {
		fmt.Fprintf(bw, "- %s\n", md(s))
	}
	return bw.Flush()
}
