package contender_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/contender"
)

// product is a product with its contenders, in the catalogue's order.
type product struct {
	name       string
	contenders []*contender.Contender
}

func products(all []*contender.Contender) []product {
	var list []product
	for _, c := range all {
		i := slices.IndexFunc(list, func(p product) bool { return p.name == c.Product })
		if i < 0 {
			i, list = len(list), append(list, product{name: c.Product})
		}
		list[i].contenders = append(list[i].contenders, c)
	}
	return list
}

// file is the name of the product's page.
func (p product) file() string {
	return strings.ReplaceAll(strings.ToLower(p.name), " ", "-") + ".md"
}

// sharedSentences are those that the contenders of three or more products say of their lab
// form. They stand in docs/contenders.md instead of the products' pages.
func sharedSentences(all []*contender.Contender) []string {
	var order []string
	said := map[string][]string{} // products by sentence
	for _, c := range all {
		for _, s := range sentences(c) {
			if said[s] == nil {
				order = append(order, s)
			}
			if !slices.Contains(said[s], c.Product) {
				said[s] = append(said[s], c.Product)
			}
		}
	}
	return slices.DeleteFunc(order, func(s string) bool { return len(said[s]) < 3 })
}

// sentences say what of a contender's lab form is the product's and what is reproduced.
func sentences(c *contender.Contender) []string {
	var list []string
	for _, s := range c.Lab.Own {
		list = append(list, "own program: "+s)
	}
	for _, s := range c.Lab.Reproduced {
		list = append(list, "reproduced: "+s)
	}
	return list
}

func (p product) page(shared []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Contenders: %s

<!-- Written by go generate ./contenders from the files of contenders/. -->

For whoever reads or repeats figures of these contenders: what each is, which parts of it
the lab runs and which it reproduces, and what is installed on a cluster.
[All contenders](../contenders.md) explains the words.

| contender | is | version | measured by the studies |
|---|---|---|---|
`, p.name)
	for _, c := range p.contenders {
		fmt.Fprintf(&b, "| [%s](../../contenders/%s.yaml) | %s | %s | %s |\n", c.ID, c.ID, c.Summary, orDash(c.Version), orDash(strings.Join(c.Studies, ", ")))
	}
	p.retired(&b)
	p.lab(&b, shared)
	p.cluster(&b)
	return b.String()
}

func (p product) retired(b *strings.Builder) {
	for _, g := range p.by(func(c *contender.Contender) string { return c.Features.Retired }) {
		fmt.Fprintf(b, "\nRetired (%s): %s.\n", g.names(", "), strings.TrimSuffix(g.value, "."))
	}
}

// lab writes each sentence once, under the contenders that it holds for.
func (p product) lab(b *strings.Builder, shared []string) {
	b.WriteString("\n## In the lab\n")
	var order []string
	of := map[string]group{}
	common := false
	for _, c := range p.contenders {
		for _, s := range sentences(c) {
			if slices.Contains(shared, s) {
				common = true
				continue
			}
			if len(of[s].ids) == 0 {
				order = append(order, s)
			}
			of[s] = group{ids: append(of[s].ids, c.ID)}
		}
	}
	var heads []string
	under := map[string][]string{}
	for _, s := range order {
		head := of[s].names(", ")
		if under[head] == nil {
			heads = append(heads, head)
		}
		under[head] = append(under[head], s)
	}
	slices.SortStableFunc(heads, func(x, y string) int { return strings.Count(y, ",") - strings.Count(x, ",") })
	for _, head := range heads {
		if strings.Count(head, ",") == len(p.contenders)-1 && len(heads) > 1 {
			fmt.Fprintf(b, "\nAll:\n\n- %s\n", strings.Join(under[head], "\n- "))
			continue
		}
		fmt.Fprintf(b, "\n%s:\n\n- %s\n", head, strings.Join(under[head], "\n- "))
	}
	if common {
		b.WriteString("\nBesides, [what several products share](../contenders.md#what-several-products-share).\n")
	}
	reasons(b, "Not in the lab", p.by(func(c *contender.Contender) string { return cells(c.Lab.None, c.Lab.Remedy) }))
	if len(heads) == 0 && p.contenders[0].Lab.None == "" {
		b.WriteString("\nNothing is reproduced.\n")
	}
}

func (p product) cluster(b *strings.Builder) {
	b.WriteString("\n## On a cluster\n")
	installed := p.by(installation)
	if len(installed) > 0 {
		b.WriteString("\n| contender | 2024 | latest | tried | not verified, notes |\n|---|---|---|---|---|\n")
		for _, g := range installed {
			fmt.Fprintf(b, "| %s | %s |\n", g.names(", "), g.value)
		}
	}
	without := p.by(func(c *contender.Contender) string {
		if c.Kube == nil {
			return ""
		}
		return cells(c.Kube.None, c.Kube.Remedy)
	})
	reasons(b, "Not installed", without)
	for _, c := range p.contenders {
		if c.Kube == nil {
			fmt.Fprintf(b, "\n`%s` is on every cluster already.\n", c.ID)
		}
	}
}

// installation is the contender's row of the table of installations; "" if it has no recipe.
func installation(c *contender.Contender) string {
	if c.Kube == nil || c.Kube.None != "" {
		return ""
	}
	var row, notes []string
	for _, set := range []string{contender.Versions2024, contender.VersionsLatest} {
		v, ok := c.Kube.Versions[set]
		version := v.Version
		if v.LookedUp != "" {
			version += " (" + v.LookedUp + ")"
		}
		if ok && v.Unverified != "" {
			notes = append(notes, set+": "+v.Unverified)
		}
		row = append(row, orDash(version))
	}
	if v, ok := c.Kube.Versions[contender.VersionsModules]; ok {
		notes = append(notes, "with `--versions "+contender.VersionsModules+"`: "+v.Version+", run")
	}
	return strings.Join(append(row, onCluster(c.Kube), orDash(strings.Join(append(notes, c.Kube.Notes...), "; "))), " | ")
}

func reasons(b *strings.Builder, title string, groups []group) {
	if len(groups) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n\n| contender | why | instead |\n|---|---|---|\n", title)
	for _, g := range groups {
		fmt.Fprintf(b, "| %s | %s |\n", g.names(", "), g.value)
	}
}

// cells are two cells of a table; "" if the first is empty.
func cells(first, second string) string {
	if first == "" {
		return ""
	}
	return first + " | " + second
}

// group is contenders of which the same can be said.
type group struct {
	value string
	ids   []string
}

func (g group) names(separator string) string {
	return "`" + strings.Join(g.ids, "`"+separator+"`") + "`"
}

// by groups the product's contenders by a value, leaving out those where it is empty.
func (p product) by(value func(*contender.Contender) string) []group {
	var list []group
	for _, c := range p.contenders {
		v := value(c)
		if v == "" {
			continue
		}
		i := slices.IndexFunc(list, func(g group) bool { return g.value == v })
		if i < 0 {
			i, list = len(list), append(list, group{value: v})
		}
		list[i].ids = append(list[i].ids, c.ID)
	}
	return list
}
