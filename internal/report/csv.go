package report

import (
	"bufio"
	"io"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/text"
)

var csvHeader = []string{
	"run", "arena", "suite", "baseline",
	"contender", "kernel", "underlay", "step", "path", "metric", "unit", "better",
	"n", "median", "ci_low", "ci_high", "confidence", "values",
	"vs_baseline_ratio", "vs_baseline_ci_low", "vs_baseline_ci_high", "vs_baseline_p", "tier",
	"mdd", "rounds_for_5_percent", "ranked", "emulated", "groups",
}

// writeCSV writes CSV as in RFC 4180, but with line feeds. Texts are always quoted, numbers
// never. A missing figure is an empty field, and the values of rounds are joined by spaces.
// guard protects texts that a spreadsheet would execute.
func writeCSV(w io.Writer, r *analysis.Report, _ Options) error {
	if _, err := io.WriteString(w, strings.Join(csvHeader, ",")+"\n"); err != nil {
		return err
	}
	return writeCSVRows(w, r)
}

// writeCSVRows writes the rows below the header.
func writeCSVRows(w io.Writer, r *analysis.Report) error {
	bw := bufio.NewWriter(text.SafeWriter(w))
	for _, res := range r.Results {
		values := make([]string, len(res.Values))
		for i, v := range res.Values {
			values[i] = layout.Exact(v)
		}
		low, high := bounds(res.CI)
		fields := []string{
			quote(r.Run.ID), quote(r.Run.Arena), quote(r.Run.Suite), quote(r.Baseline),
			quote(res.Contender), quote(res.Kernel), quote(res.Underlay), quote(res.Step),
			quote(res.Path), quote(res.Metric), quote(res.Unit), quote(res.Better),
			strconv.Itoa(res.N), layout.Exact(res.Median), low, high, layout.Exact(res.Confidence), quote(strings.Join(values, " ")),
		}
		vs := []string{"", "", "", ""}
		if c := res.VsBaseline; c != nil {
			vs[0] = layout.Exact(c.Ratio)
			vs[1], vs[2] = bounds(c.CI)
			if c.P != nil {
				vs[3] = layout.Exact(*c.P)
			}
		}
		fields = append(fields, vs...)
		fields = append(fields, strconv.Itoa(res.Tier), "", "")
		if res.MDD != nil {
			fields[len(fields)-2] = layout.Exact(*res.MDD)
		}
		if res.RoundsFor5 > 0 {
			fields[len(fields)-1] = strconv.Itoa(res.RoundsFor5)
		}
		fields = append(fields, strconv.FormatBool(res.Ranked), strconv.FormatBool(r.Run.Environment.Emulated()), quote(strings.Join(res.Letters, "")))
		bw.WriteString(strings.Join(fields, ",") + "\n")
	}
	return bw.Flush()
}

func quote(s string) string { return `"` + strings.ReplaceAll(guard(s), `"`, `""`) + `"` }

// guard puts an apostrophe before a character that begins a formula, if it is the first
// of a cell, because spreadsheets execute quoted cells, too. After a character that some
// spreadsheets take for the end of a cell, a new cell begins. An apostrophe at the begin of a
// cell gets another one, so that a reader can remove the first again.
func guard(s string) string {
	var b strings.Builder
	begins, written := true, 0
	for i, r := range s {
		if begins && strings.ContainsRune("=+-@'\t\r\n＝＋－＠", r) {
			b.WriteString(s[written:i] + "'")
			written = i
		}
		begins = strings.ContainsRune(";,\t\r\n\"", r)
	}
	return b.String() + s[written:]
}

func bounds(i *analysis.Interval) (low, high string) {
	if i == nil {
		return "", ""
	}
	return layout.Exact(i[0]), layout.Exact(i[1])
}
