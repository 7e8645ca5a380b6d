package tune

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const page = "../../docs/tuning.md"

// TestPage keeps the generated parts of docs/tuning.md equal to the settings.
func TestPage(t *testing.T) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	got := string(data)
	for name, text := range map[string]string{"profiles": profilesText(), "settings": settingsText()} {
		open, end := "<!-- generated:"+name+" -->\n", "<!-- /generated:"+name+" -->"
		before, rest, ok := strings.Cut(got, open)
		_, after, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("%s: the markers of part %q are gone", page, name)
		}
		got = before + open + "\n" + text + "\n" + end + after
	}
	if *update {
		if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(got, string(data)); diff != "" {
		t.Errorf("docs/tuning.md is stale; run go test ./internal/tune -run TestPage -update\n%s", diff)
	}
}

func profilesText() string {
	var b strings.Builder
	b.WriteString("| profile | for | settings |\n|---|---|---|\n")
	for _, p := range Profiles() {
		var names []string
		for _, c := range p.Choices {
			name := c.Setting
			if value := c.Params["profile"]; value != "" {
				name += " (" + value + ")"
			}
			names = append(names, name)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", p.Name, p.Summary, strings.Join(names, ", "))
	}
	return b.String()
}

func settingsText() string {
	var b strings.Builder
	for _, s := range All() {
		fmt.Fprintf(&b, "### %s\n\n*%s*\n\n", s.Name, s.Summary)
		for _, part := range []struct{ label, text string }{
			{"Why", s.Why}, {"Never offered", s.Never}, {"Costs", s.Cost}, {"Not", s.Avoid}, {"Study", strings.Join(s.Studies, ", ")},
			{"Source", s.Source}, {"Scope", string(s.Scope)}, {"Parameters", parameters(s)},
		} {
			if part.text != "" {
				fmt.Fprintf(&b, "- %s: %s\n", part.label, part.text)
			}
		}
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func parameters(s Setting) string {
	var words []string
	for _, p := range s.Params {
		words = append(words, fmt.Sprintf("`%s.%s=%s` (%s)", s.Name, p.Name, p.Default, p.Help))
	}
	return strings.Join(words, ", ")
}
