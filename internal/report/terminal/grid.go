package terminal

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// NewGrid returns a table whose only line is below its head. The columns with the given
// numbers (from 1) are aligned to the right.
func NewGrid(right ...int) table.Writer {
	tw := table.NewWriter()
	tw.SetStyle(table.Style{
		Box:     table.BoxStyle{MiddleHorizontal: "─", PaddingRight: strings.Repeat(" ", columnGap)},
		Format:  table.FormatOptions{Header: text.FormatDefault, Row: text.FormatDefault},
		Options: table.Options{SeparateHeader: true},
	})
	configs := make([]table.ColumnConfig, len(right))
	for i, n := range right {
		configs[i] = table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight}
	}
	tw.SetColumnConfigs(configs)
	return tw
}

// ButFirst returns the numbers 2 to columns.
func ButFirst(columns int) []int {
	var numbers []int
	for n := 2; n <= columns; n++ {
		numbers = append(numbers, n)
	}
	return numbers
}

// Lines returns the lines of a grid without blanks at their ends.
func Lines(grid table.Writer) []string {
	lines := strings.Split(grid.Render(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// Grid prints a grid.
func (t *Writer) Grid(grid table.Writer) {
	for _, line := range Lines(grid) {
		t.Line(line)
	}
}
