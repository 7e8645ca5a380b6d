package published_test

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/published"
)

var update = flag.Bool("update", false, "bring docs/published.md up to date")

const (
	page  = "../../docs/published.md"
	open  = "<!-- generated -->\n"
	close = "<!-- /generated -->\n"
)

// TestPage keeps the generated part of the page equal to the data.
func TestPage(t *testing.T) {
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), open)
	_, after, ok2 := strings.Cut(rest, close)
	if !ok || !ok2 {
		t.Fatalf("%s: the markers of the generated part are gone", page)
	}
	got := before + open + "\n" + generated(studies(t)) + close + after
	if *update {
		if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(b), got); diff != "" {
		t.Errorf("docs/published.md is stale; run go test ./internal/published -update\n%s", diff)
	}
}

func generated(all []published.Study) string {
	var b strings.Builder
	b.WriteString("| study | by | date | compared with yours | tables |\n|---|---|---|---|---:|\n")
	for _, s := range all {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s | %s | %d |\n", s.ID, anchor(s), s.Author, s.Date, strings.Join(compared(s), ", "), len(s.Tables))
	}
	b.WriteString("\nHow figures were read:")
	for i, name := range slices.Sorted(maps.Keys(published.Readings())) {
		if i > 0 {
			b.WriteString(";")
		}
		fmt.Fprintf(&b, " *%s*: %s", name, published.Readings()[name])
	}
	b.WriteString(".\n")
	for _, s := range all {
		fmt.Fprintf(&b, "\n## %s: %s\n\n", s.ID, s.Title)
		source := s.URL
		if s.File != "" {
			source += ", `" + s.File + "`"
		}
		fmt.Fprintf(&b, "- By %s, %s: %s\n- Machines: %s\n- Software: %s\n- Method: %s\n", s.Author, s.Date, source, s.Hardware, s.Software, s.Method)
		if s.Link != "" {
			fmt.Fprintf(&b, "- Link: at most %s of goodput; from 95 %% of that on, reports mark it as the limit\n", s.Link)
		}
		for _, key := range published.ConditionKeys() {
			if text := s.Conditions[key]; text != "" {
				fmt.Fprintf(&b, "- Its %s: %s\n", key, text)
			}
		}
		for _, c := range s.Caveats {
			fmt.Fprintf(&b, "- Beware: %s\n", c)
		}
		for _, t := range s.Tables {
			writeTable(&b, t)
		}
	}
	return b.String()
}

func writeTable(b *strings.Builder, t published.Table) {
	fmt.Fprintf(b, "\n**%s** (%s", t.Title, t.Read)
	if t.Hardware != "" {
		fmt.Fprintf(b, "; %s", t.Hardware)
	}
	b.WriteString(")")
	if t.Note != "" {
		b.WriteString(" " + t.Note)
	}
	b.WriteString("\n\n| configuration | contender |")
	for _, c := range t.Columns {
		fmt.Fprintf(b, " %s, %s", c.Name, c.Unit)
		if c.Class != "" {
			fmt.Fprintf(b, "<br>`%s` `%s`", c.Class, c.Metric)
		}
		b.WriteString(" |")
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---:|", len(t.Columns)) + "\n")
	for _, r := range t.Rows {
		contender := ""
		if r.Contender != "" {
			contender = "`" + r.Contender + "`"
		}
		name := "`" + r.Name + "`"
		if !strings.HasPrefix(r.Name, "-") {
			name = r.Name
		}
		fmt.Fprintf(b, "| %s | %s |", name, contender)
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

// compared is what a report can set beside one's own figures.
func compared(s published.Study) []string {
	var classes []string
	for _, t := range s.Tables {
		for _, c := range t.Columns {
			if c.Class != "" && !slices.Contains(classes, c.Class) {
				classes = append(classes, c.Class)
			}
		}
	}
	if len(classes) == 0 {
		return []string{"nothing: no baseline like ours"}
	}
	return classes
}

// anchor is the fragment that GitHub gives the study's heading.
func anchor(s published.Study) string {
	heading := strings.ToLower(s.ID + ": " + s.Title)
	var b strings.Builder
	for _, r := range heading {
		switch {
		case r == ' ':
			b.WriteRune('-')
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			b.WriteRune(r)
		}
	}
	return b.String()
}
