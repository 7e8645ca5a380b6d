package contender_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/pagetest"
)

var update = flag.Bool("update", false, "bring docs/contenders.md up to date")

// TestPage keeps the generated parts of the page equal to the files.
func TestPage(t *testing.T) {
	all := catalogue(t)
	pagetest.Check(t, "../../docs/contenders.md", *update, map[string]string{
		"table": table(all), "lab": labForms(all), "none": withoutLab(all), "kube": recipes(all), "kube-none": withoutRecipe(all),
	})
}

func table(all []*contender.Contender) string {
	var b strings.Builder
	b.WriteString("| contender | product, version | attach | transport | services | overhead | encryption | policy | measured by | lab | cluster |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, c := range all {
		product := strings.TrimSpace(c.Product + " " + c.Version)
		if c.Features.Status == "retired" {
			product += " (retired)"
		}
		fmt.Fprintf(&b, "| [%s](../contenders/%s.yaml) | %s | %s | %s | %s | %g | %s | %s | %s | %s | %s |\n",
			c.ID, c.ID, product, c.Datapath.Attach, c.Datapath.Transport, c.Datapath.Services,
			float64(c.Datapath.Overhead), encryption(c.Features), policy(c.Features.Policy), orDash(strings.Join(c.Studies, ", ")), yesNo(c.Lab.None == ""), onCluster(c.Kube))
	}
	return b.String()
}

func labForms(all []*contender.Contender) string {
	var b strings.Builder
	for _, c := range all {
		if len(c.Lab.Own)+len(c.Lab.Reproduced) == 0 {
			continue
		}
		fmt.Fprintf(&b, "`%s`: %s.\n\n", c.ID, c.Summary)
		for _, s := range c.Lab.Own {
			fmt.Fprintf(&b, "- own program: %s\n", s)
		}
		for _, s := range c.Lab.Reproduced {
			fmt.Fprintf(&b, "- reproduced: %s\n", s)
		}
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func withoutLab(all []*contender.Contender) string {
	var b strings.Builder
	b.WriteString("| contender | why | instead |\n|---|---|---|\n")
	for _, c := range all {
		if c.Lab.None != "" {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", c.ID, c.Lab.None, c.Lab.Remedy)
		}
	}
	return b.String()
}

// onCluster says how far the recipe has been tried.
func onCluster(k *contender.Kube) string {
	switch {
	case k == nil:
		return "needs none"
	case k.None != "":
		return "no"
	case k.Checked == contender.CheckedWritten:
		return "only written"
	}
	return k.Checked
}

func recipes(all []*contender.Contender) string {
	var b strings.Builder
	b.WriteString("| contender | 2024 | latest | tried | not verified, notes |\n|---|---|---|---|---|\n")
	for _, c := range all {
		if c.Kube == nil || c.Kube.None != "" {
			continue
		}
		var notes []string
		versions := map[string]string{}
		for _, set := range contender.VersionSets() {
			v, ok := c.Kube.Versions[set]
			if !ok {
				versions[set] = "–"
				continue
			}
			versions[set] = v.Version
			if v.LookedUp != "" {
				versions[set] += " (" + v.LookedUp + ")"
			}
			if v.Unverified != "" {
				notes = append(notes, set+": "+v.Unverified)
			}
		}
		notes = append(notes, c.Kube.Notes...)
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", c.ID, versions[contender.Versions2024], versions[contender.VersionsLatest],
			onCluster(c.Kube), orDash(strings.Join(notes, "; ")))
	}
	return b.String()
}

func withoutRecipe(all []*contender.Contender) string {
	var b strings.Builder
	b.WriteString("| contender | why | instead |\n|---|---|---|\n")
	for _, c := range all {
		if c.Kube != nil && c.Kube.None != "" {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", c.ID, c.Kube.None, c.Kube.Remedy)
		}
	}
	return b.String()
}

func encryption(f contender.Features) string {
	switch {
	case f.Encryption == "none":
		return "–"
	case f.KeyRotation:
		return f.Encryption + ", keys rotate"
	}
	return f.Encryption
}

func policy(p contender.Policy) string {
	var words []string
	for _, d := range []struct {
		has  bool
		word string
	}{{p.Ingress, "ingress"}, {p.Egress, "egress"}, {p.L7, "L7"}} {
		if d.has {
			words = append(words, d.word)
		}
	}
	return orDash(strings.Join(words, ", "))
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
