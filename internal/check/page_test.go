package check

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/testutil/pagetest"
)

var update = flag.Bool("update", false, "bring docs/checks.md up to date")

// TestPage keeps the table of checks equal to the checks.
func TestPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("| check | question |\n|---|---|\n")
	for _, c := range All() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", c.Info().Name, c.Info().Summary)
	}
	pagetest.Check(t, "../../docs/checks.md", *update, map[string]string{"checks": b.String()})
}
