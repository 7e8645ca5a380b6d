package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/check"
	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/text"
)

// checkFormats are the forms of `cnibench check`'s output.
var checkFormats = []string{"text", "md", "json"}

// writeChecks prints what was found: of one check a row for each contender; of
// several the matrix, then a row for each that is not as it should be.
func writeChecks(w io.Writer, o *run.CheckOutput, format string) error {
	o.Matrix = check.NewMatrix(o.Results)
	if format == "json" {
		return cmdutil.PrintJSON(w, o)
	}
	if o.Idle() != "" {
		return nil // the error says it in a line
	}
	show := cmdutil.PrintTable
	if format == "md" {
		show = printMarkdown
	}
	results := slices.Clone(o.Results)
	slices.SortStableFunc(results, func(a, b check.Result) int { return strings.Compare(a.Contender, b.Contender) })
	header := []string{"Contender", "Check", "Nodes", "Underlay", "Verdict", "Found", "What, and what to do"}
	if several(o.Results) {
		head, cells := matrixTable(o.Matrix)
		show(w, head, cells)
		results = slices.DeleteFunc(results, func(r check.Result) bool { return r.Verdict() == check.Pass && r.Error == "" })
		if len(results) > 0 {
			fmt.Fprintln(w)
		}
	}
	if len(results) > 0 {
		var rows [][]string
		for _, r := range results {
			rows = append(rows, checkRows(&r)...)
		}
		show(w, header, rows)
	}
	if len(o.Unsupported) == 0 {
		return nil
	}
	var rows [][]string
	for _, u := range o.Unsupported {
		why := strings.TrimSuffix(u.Reason, ".")
		if u.Remedy != "" {
			why += "; " + u.Remedy
		}
		rows = append(rows, []string{u.Contender, why})
	}
	fmt.Fprintln(w)
	show(w, []string{"Not here", "Why, and what would help"}, rows)
	return nil
}

// several says whether the results are of more than one check.
func several(results []check.Result) bool {
	return slices.ContainsFunc(results, func(r check.Result) bool { return r.Check != results[0].Check })
}

// matrixTable is the matrix as a table. Of a check that nobody was asked the
// first column is enough.
func matrixTable(m check.Matrix) (header []string, rows [][]string) {
	header = []string{"Contender"}
	for _, r := range m.Rows {
		rows = append(rows, []string{r.Contender})
	}
	for i, c := range m.Columns {
		first := i == 0 || m.Columns[i-1].Check != c.Check
		asked := slices.ContainsFunc(m.Rows, func(r check.Row) bool { return r.Cells[i].String() != check.Cell{Verdict: check.Skip}.String() })
		if !asked && !first {
			continue
		}
		header = append(header, c.Check+" "+c.Name)
		for k, r := range m.Rows {
			rows[k] = append(rows[k], r.Cells[i].String())
		}
	}
	return header, rows
}

// checkRows are one result: a row for each kind of failure, or one for what says most.
func checkRows(r *check.Result) (rows [][]string) {
	under := ""
	if r.UnderlayMTU > 0 {
		under = fmt.Sprint(r.UnderlayMTU)
	}
	row := func(verdict, found, text string) {
		rows = append(rows, []string{r.Contender, r.Check, strings.Join(r.Nodes, ", "), under, verdict, found, text})
	}
	if r.Error != "" {
		row("error", "", r.Error)
		return rows
	}
	told := r.MainCase()
	if told == nil {
		row(string(r.Verdict()), "", "")
		return rows
	}
	said := map[string]bool{}
	for i := range r.Cases {
		c := &r.Cases[i]
		if c.Verdict != told.Verdict || said[c.Found] || c.Verdict != check.Fail && c != told {
			continue
		}
		said[c.Found] = true
		text := c.Text + sameAs(r, c)
		if c.Verdict == check.Fail && len(r.Cases) > 1 {
			text = c.Name + ": " + text
		}
		if _, err := check.Policy(check.OneCase{Name: c.Name}); err == nil && c.Verdict == check.Fail && r.Check == "policy" {
			text += ". See it alone: cnibench check policy --case " + c.Name + " --hold 10m"
		}
		if c.Next != "" {
			text += ". " + c.Next
		}
		row(verdictWord(c), c.Found, text)
	}
	return rows
}

// verdictWord is the verdict of a case for people: pass means protected, so that what went in clear
// as promised has another word.
func verdictWord(c *check.Case) string {
	if c.Verdict == check.Pass && c.Found == check.Plain {
		return "NOT ENCRYPTED"
	}
	return string(c.Verdict)
}

// sameAs names the other cases that came out as the told one.
func sameAs(r *check.Result, told *check.Case) string {
	var names []string
	for _, c := range r.Cases {
		if c.Verdict == told.Verdict && c.Found == told.Found && c.Name != told.Name {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; likewise " + strings.Join(names, ", ")
}

// printMarkdown is the table for a page.
func printMarkdown(w io.Writer, header []string, rows [][]string) {
	line := func(cells []string) {
		for _, c := range cells {
			fmt.Fprintf(w, "| %s ", strings.ReplaceAll(text.SafeLine(c), "|", `\|`))
		}
		fmt.Fprintln(w, "|")
	}
	line(header)
	fmt.Fprintln(w, "|"+strings.Repeat("---|", len(header)))
	for _, row := range rows {
		line(row)
	}
}
