package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/tune"
	"github.com/cnibench/cnibench/internal/unit"
)

// print prints what the settings did.
func (f *tuneBenchFlags) print(out io.Writer, j tune.Judgement) error {
	switch {
	case f.asJSON:
		return cmdutil.PrintJSON(out, benchJSON(f.run.Out, f.contender, j))
	case f.markdown:
		printEffectsMarkdown(out, f.contender, j)
	default:
		printEffects(out, f.contender, j)
		fmt.Fprintf(out, "\nReport: %s/report.html\n", f.run.Out)
	}
	return nil
}

// benchJSON is the verdicts for programs.
func benchJSON(run, contender string, j tune.Judgement) any {
	return struct {
		Schema    string `json:"schema"`
		Run       string `json:"run"`
		Contender string `json:"contender"`
		tune.Judgement
		Caveat string `json:"caveat,omitempty"`
	}{"cnibench/tune-bench/1", run, contender, j, caveat(j)}
}

var effectHeader = []string{"Setting", "Step", "Figure", "Without", "With", "Ratio", "Verdict"}

// effectRow is an effect in words.
func effectRow(contender string, e tune.Difference) []string {
	name := strings.TrimPrefix(e.Variant, contender+"+")
	verdict := string(e.Verdict)
	if e.Reason != "" {
		verdict += ": " + strings.Join(strings.Fields(e.Reason), " ") // errors have lines
	}
	if e.Verdict == tune.NoData {
		return []string{name, e.Step, "", "", "", "", verdict}
	}
	return []string{name, e.Step, e.Metric, unit.Format(e.Before, e.Unit), unit.Format(e.After, e.Unit), ratioWords(e), verdict}
}

// printEffects is the verdicts for people.
func printEffects(out io.Writer, contender string, j tune.Judgement) {
	var rows [][]string
	for _, e := range j.Differences {
		rows = append(rows, effectRow(contender, e))
	}
	fmt.Fprintf(out, "%s without settings and with them; ratios are paired within rounds, with 95 %% intervals\n", contender)
	cmdutil.PrintTable(out, effectHeader, rows)
	if text := caveat(j); text != "" {
		fmt.Fprintf(out, "\n%s\n", text)
	}
}

// printEffectsMarkdown is the same as a table for a page.
func printEffectsMarkdown(out io.Writer, contender string, j tune.Judgement) {
	fmt.Fprintf(out, "| %s |\n|%s\n", strings.Join(effectHeader, " | "), strings.Repeat("---|", len(effectHeader)))
	for _, e := range j.Differences {
		row := effectRow(contender, e)
		for i := range row {
			row[i] = strings.ReplaceAll(row[i], "|", `\|`)
		}
		fmt.Fprintf(out, "| %s |\n", strings.Join(row, " | "))
	}
	if text := caveat(j); text != "" {
		fmt.Fprintf(out, "\n%s\n", text)
	}
}

// caveat is what a reader of verdicts must know of their number; "" where
// nothing was compared.
func caveat(j tune.Judgement) string {
	if j.Comparisons == 0 {
		return ""
	}
	return fmt.Sprintf("Corrected for all %s of the run (Holm): the chance that any helped or hurt is an accident is 5 %%. It takes at least %s to show one.",
		unit.Plural(j.Comparisons, "comparison"), unit.Plural(j.MinRounds, "round"))
}

func ratioWords(e tune.Difference) string {
	if e.CI == nil {
		return unit.Ratio(e.Ratio) + "×"
	}
	return fmt.Sprintf("%s× (%s–%s)", unit.Ratio(e.Ratio), unit.Ratio(e.CI[0]), unit.Ratio(e.CI[1]))
}
