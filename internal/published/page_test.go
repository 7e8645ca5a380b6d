package published_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/published"
	"github.com/cnibench/cnibench/internal/testutil/pagetest"
)

var update = flag.Bool("update", false, "bring docs/published.md up to date")

// TestPage keeps the page's list of studies equal to the data.
func TestPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("| study | by | date | steps compared with yours |\n|---|---|---|---|\n")
	for _, s := range studies(t) {
		classes := strings.Join(s.ComparedClasses(), ", ")
		if classes == "" {
			classes = "none: no baseline like ours"
		}
		fmt.Fprintf(&b, "| `%s` | [%s](%s) | %s | %s |\n", s.ID, s.Author, s.URL, s.Date, classes)
	}
	pagetest.Check(t, "../../docs/published.md", *update, map[string]string{"studies": b.String()})
}

// TestPrint holds the printed text of one study against its data, and that every study has one.
func TestPrint(t *testing.T) {
	for _, s := range studies(t) {
		var b strings.Builder
		if err := s.Print(&b); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(b.String(), "# "+s.ID+": ") || strings.Count(b.String(), "\n## ") != len(s.Tables) {
			t.Errorf("%s: %d tables, printed as\n%s", s.ID, len(s.Tables), b.String())
		}
	}
	one, none := 1.25, published.Row{Name: "b", Values: []*float64{nil}}
	s := published.Study{ID: "x", Title: "y", Tables: []published.Table{{
		Title: "t", Read: "table", Columns: []published.Column{{Name: "c", Unit: "us"}},
		Rows: []published.Row{{Name: "a", Contender: "host", Values: []*float64{&one}, Lossy: []string{"c"}}, none},
	}}}
	var b strings.Builder
	if err := s.Print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| a | host | 1.25 (lossy) |", "| b |  | – |", "| configuration | contender | c, us |"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
