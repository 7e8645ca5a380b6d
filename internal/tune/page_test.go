package tune

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/testutil/pagetest"
)

const page = "../../docs/tuning.md"

// TestPage checks that the generated parts of docs/tuning.md match the profiles.
func TestPage(t *testing.T) {
	pagetest.Check(t, page, *update, map[string]string{"profiles": profilesText()})
}

func profilesText() string {
	var b strings.Builder
	b.WriteString("| profile | for | settings | by hand |\n|---|---|---|---|\n")
	for _, p := range Profiles() {
		var names []string
		for _, c := range p.Choices {
			name := c.Setting
			if value := c.Params["profile"]; value != "" {
				name += " (" + value + ")"
			}
			names = append(names, name)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", p.Name, p.Summary, strings.Join(names, ", "), strings.Join(p.ByHand, "; "))
	}
	return b.String()
}
