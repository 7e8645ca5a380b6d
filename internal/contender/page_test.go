package contender_test

import (
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/testutil/pagetest"
)

var update = flag.Bool("update", false, "bring docs/contenders.md and the pages of docs/contenders up to date")

// TestPages keeps the table of docs/contenders.md and the products' pages equal to the files.
func TestPages(t *testing.T) {
	all := catalogue(t)
	shared := sharedSentences(all)
	pagetest.Check(t, "../../docs/contenders.md", *update, map[string]string{"table": table(all), "shared": "- " + strings.Join(shared, "\n- ") + "\n"})
	pages := []string{"measured.md"} // written by hand
	for _, p := range products(all) {
		pages = append(pages, p.file())
		pagetest.CheckWhole(t, filepath.Join("../../docs/contenders", p.file()), *update, p.page(shared))
	}
	have, err := filepath.Glob("../../docs/contenders/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range have {
		if !slices.Contains(pages, filepath.Base(path)) {
			t.Errorf("%s is no product's page: remove it", path)
		}
	}
}

func table(all []*contender.Contender) string {
	var b strings.Builder
	b.WriteString("| contender | product, version | attach | transport | services | overhead | MTU | encryption | policy | lab | held against the real one | cluster |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, c := range all {
		version := strings.TrimSpace(c.Product + " " + c.Version)
		if c.Features.Status == "retired" {
			version += " (retired)"
		}
		fmt.Fprintf(&b, "| [%s](contenders/%s) | %s | %s | %s | %s | %g | %s | %s | %s | %s | %s | %s |\n",
			c.ID, product{name: c.Product}.file(), version, c.Datapath.Attach, c.Datapath.Transport, c.Datapath.Services,
			float64(c.Datapath.Overhead), mtu(c.Datapath), encryption(c.Features), policy(c.Features.Policy), yesNo(c.Lab.None == ""), held(c.Lab.Held), onCluster(c.Kube))
	}
	return b.String()
}

// mtu says who finds the MTU of pods, and the value that is fixed.
func mtu(d contender.Datapath) string {
	switch {
	case d.UnderlayPodMTU:
		return d.MTU + ", the underlay's"
	case d.PodMTU > 0:
		return fmt.Sprintf("%s, %g", d.MTU, float64(d.PodMTU))
	}
	return d.MTU
}

// held says how far the lab form is from its product.
func held(h *contender.Held) string {
	if h == nil {
		return "–"
	}
	text := fmt.Sprintf("goodput %.2f, CPU %.2f, latency %.2f (%s)", h.Goodput, h.CPU, h.Latency, h.Version)
	if h.Cause != "" {
		text += "; " + h.Cause
	}
	return text
}

// onCluster says how far the recipe has been tried.
func onCluster(k *contender.Kube) string {
	if k == nil {
		return "needs none"
	}
	_, modules := k.Versions[contender.VersionsModules]
	switch {
	case k.None != "":
		return "no"
	case k.Checked == contender.CheckedWritten:
		return "only written"
	case k.Checked == contender.CheckedRendered && modules:
		return "run (`modules`), else rendered"
	}
	return k.Checked
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
