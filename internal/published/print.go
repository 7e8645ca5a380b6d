package published

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ComparedClasses holds the classes of steps whose figures a report can set beside the study's,
// in the order of its tables.
func (s *Study) ComparedClasses() []string {
	var classes []string
	for _, t := range s.Tables {
		for _, c := range t.Columns {
			if c.Class != "" && !slices.Contains(classes, c.Class) {
				classes = append(classes, c.Class)
			}
		}
	}
	return classes
}

// Print writes the study as Markdown: source, machines, method, caveats, and every table.
func (s *Study) Print(w io.Writer) error {
	var b strings.Builder
	source := s.URL
	if s.File != "" {
		source += ", " + s.File
	}
	fmt.Fprintf(&b, "# %s: %s\n\n- By %s, %s: %s\n- Machines: %s\n- Software: %s\n- Method: %s\n", s.ID, s.Title, s.Author, s.Date, source, s.Hardware, s.Software, s.Method)
	if s.Link != "" {
		fmt.Fprintf(&b, "- Link: at most %s of goodput; from 95 %% of that on, reports mark it as the limit\n", s.Link)
	}
	for _, key := range ConditionKeys() {
		if text := s.Conditions[key]; text != "" {
			fmt.Fprintf(&b, "- Its %s: %s\n", key, text)
		}
	}
	for _, c := range s.Caveats {
		fmt.Fprintf(&b, "- Beware: %s\n", c)
	}
	for i := range s.Tables {
		s.Tables[i].print(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t *Table) print(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\nRead from: %s.", t.Title, Readings()[t.Read])
	if t.Hardware != "" {
		fmt.Fprintf(b, " Machines: %s.", t.Hardware)
	}
	if t.Note != "" {
		b.WriteString(" " + t.Note)
	}
	b.WriteString("\n\n| configuration | contender |")
	for _, c := range t.Columns {
		fmt.Fprintf(b, " %s, %s |", c.Name, c.Unit)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---:|", len(t.Columns)) + "\n")
	for _, r := range t.Rows {
		fmt.Fprintf(b, "| %s | %s |", r.Name, r.Contender)
		for i, v := range r.Values {
			if v == nil {
				b.WriteString(" – |")
				continue
			}
			fmt.Fprintf(b, " %s", strconv.FormatFloat(math.Round(*v*1000)/1000, 'f', -1, 64))
			if slices.Contains(r.Lossy, t.Columns[i].Name) {
				b.WriteString(" (lossy)")
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
}
