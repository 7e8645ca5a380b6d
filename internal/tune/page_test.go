package tune

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/testutil/pagetest"
)

const page = "../../docs/tuning.md"

// TestPage checks that the generated parts of docs/tuning.md match the settings.
func TestPage(t *testing.T) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	pagetest.Check(t, page, *update, map[string]string{"profiles": profilesText(), "settings": settingsText(t, effectsOn(string(data)))})
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

// notMeasured is why the page has no effect of a setting that the lab could
// have measured: the machine that it was written on, or the suite.
func notMeasured() map[string]string {
	const (
		connections = "it is about many new connections, which the steps of suite quick do not make; those of suite rr do"
		alike       = "the machine has it already"
	)
	return map[string]string{
		"smt": "the machine's CPUs have no second threads", "governor": "the machine's CPUs have no frequency governor",
		"sched-migration-cost": "debugfs, where the machine's kernel has it, was not mounted",
		"file-max":             alike, "metrics-save": "the lab's namespaces are new in every visit, and know no peer",
		"local-ports": connections, "tw-buckets": connections, "tw-reuse": connections, "fin-timeout": connections,
	}
}

// effectsOn are the rows of the page's tables of effects by setting, as words.
func effectsOn(page string) map[string][]string {
	effects := map[string][]string{}
	for part := range strings.SplitSeq(page, "<!-- effect:") {
		name, table, ok := strings.Cut(part, " -->")
		table, _, ended := strings.Cut(table, "<!-- /effect:"+name+" -->")
		if !ok || !ended {
			continue
		}
		for line := range strings.Lines(table) {
			// Setting, step, figure, without, with, ratio, verdict.
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
			if len(cells) < 7 || strings.Contains(line, "---") {
				continue
			}
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			effects[cells[0]] = append(effects[cells[0]], fmt.Sprintf("%s of %s, %s %s: %s", cells[2], name, cells[1], cells[5], cells[6]))
		}
	}
	return effects
}

func settingsText(t *testing.T, effects map[string][]string) string {
	var b strings.Builder
	for _, s := range All() {
		fmt.Fprintf(&b, "### %s\n\n*%s*\n\n", s.Name, s.Summary)
		measured := strings.Join(effects[s.Name], "; ")
		if measured == "" {
			why := s.NotInLab()
			if why == "" {
				why = notMeasured()[s.Name]
			}
			if why == "" {
				t.Errorf("%s: neither measured nor said why not", s.Name)
			}
			measured = "not measured: " + why
		}
		for _, part := range []struct{ label, text string }{
			{"Why", s.Why}, {"Costs", s.Cost}, {"Not", s.Avoid}, {"Effect here", measured}, {"Study", strings.Join(s.Studies, ", ")},
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
