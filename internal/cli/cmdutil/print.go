package cmdutil

import (
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	pretty "github.com/jedib0t/go-pretty/v6/text"

	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/text/console"
)

// PrintJSON prints a value for programs.
func PrintJSON(w io.Writer, v any) error { return text.EncodeJSON(w, v) }

// PrintTable prints rows for people, as wide as the terminal is.
func PrintTable(w io.Writer, header []string, rows [][]string) {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.Style().Format.Header = pretty.FormatDefault
	t.SuppressTrailingSpaces()
	head := make(table.Row, len(header))
	for i, h := range header {
		head[i] = h
	}
	t.AppendHeader(head)
	// The last column is prose: it takes what the others leave.
	width := console.Width(w) - 1 // the space before it
	for i := range header[:len(header)-1] {
		widest := len(header[i])
		for _, row := range rows {
			widest = max(widest, len([]rune(row[i])))
		}
		width -= widest + 2
	}
	t.SetColumnConfigs([]table.ColumnConfig{{Number: len(header), WidthMax: max(width, 30), WidthMaxEnforcer: pretty.WrapSoft}})
	for _, row := range rows {
		r := make(table.Row, len(row))
		for i, cell := range row {
			r[i] = text.Safe(cell)
		}
		t.AppendRow(r)
	}
	t.Render()
}

// JoinOr lists names as "a, b or c".
func JoinOr(names []string) string {
	out := ""
	for i, n := range names {
		switch {
		case i == 0:
		case i == len(names)-1:
			out += " or "
		default:
			out += ", "
		}
		out += n
	}
	return out
}
