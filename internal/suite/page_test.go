package suite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/testutil/pagetest"
	"github.com/cnibench/cnibench/suites"
)

// TestPage keeps the table of suites equal to the files.
func TestPage(t *testing.T) {
	all, err := Load(suites.FS)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| suite | measures | steps | rounds | study |\n|---|---|---:|---:|---|\n")
	for _, s := range all {
		steps, err := s.Expand("auto", nil)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "| [%s](../suites/%s.yaml) | %s | %d of %v | %s | %s |\n", s.ID, s.ID, s.Summary, len(steps), s.Duration, s.RoundsText(), s.Study)
	}
	pagetest.Check(t, "../../docs/suites.md", *update, map[string]string{"suites": b.String()})
}
