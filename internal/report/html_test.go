package report

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var policyHash = regexp.MustCompile(`sha256-[A-Za-z0-9&#;+/]+=`)

// TestScriptHash: the policy lets the loader and the bundle run, and only these.
func TestScriptHash(t *testing.T) {
	page := write(t, "html", sample(6), Options{})
	_, loader, _ := strings.Cut(page, "<script>")
	loader, _, _ = strings.Cut(loader, "</script>")
	var want []string
	for _, script := range []string{loader, pageScript} {
		sum := sha256.Sum256([]byte(script))
		want = append(want, "sha256-"+base64.StdEncoding.EncodeToString(sum[:]))
	}
	if got := policyHash.FindAllString(html.UnescapeString(page), -1); !slices.Equal(got, want) {
		t.Errorf("policy has %s, the scripts are %s", got, want)
	}
	if !strings.Contains(readable(page), `id="bundle">BUNDLE<`) {
		t.Error("what the page packed is not the bundle")
	}
}

// TestLargePage: a page of 30 contenders and 12 steps, with what their nodes recorded, can
// be sent by mail.
func TestLargePage(t *testing.T) {
	page := write(t, "html", large(), Options{})
	if size := len(page); size > 1_500_000 {
		t.Errorf("a page of %d bytes, want at most 1.5 MB", size)
	}
}

func TestPageIsOneFile(t *testing.T) {
	if size := len(pageScript) + len(pageStyle) + len(pageSource); size > 1<<20 {
		t.Errorf("page of %d bytes without data, want at most 1 MiB", size)
	}
	for _, notice := range []string{"Apache ECharts", "Baidu Inc.", "Redistributions in binary form"} {
		if !strings.Contains(pageScript[:8192], notice) {
			t.Errorf("the bundle's head lacks the notice %q", notice)
		}
	}
	page := readable(write(t, "html", sample(6), Options{}))
	page = strings.ReplaceAll(page, `<a href="#`, "") // its own views
	for _, bad := range []string{"src=", "href=", "url(", "@import", "http://", "https://"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
}

// element finds the parts of a page that would be a browser's to act on.
var element = regexp.MustCompile(`(?i)<(script|img|iframe|object|embed|link|base|form|svg)\b|\son[a-z]+\s*=\s*["']`)

var quoted = regexp.MustCompile(`="[^"]*"`)

func checkHostile(t *testing.T, page string) {
	t.Helper()
	page = readable(page)
	markup := page
	for _, id := range []string{"data", "trace-data"} {
		before, rest, _ := strings.Cut(markup, `<script type="text/plain" id="`+id+`">`)
		data, after, _ := strings.Cut(rest, "</script>")
		if !json.Valid([]byte(data)) {
			t.Errorf("%s is no JSON", id)
		}
		if strings.ContainsAny(data, "<>") {
			t.Errorf("%s holds < or >", id)
		}
		markup = before + after
	}
	markup = strings.Replace(markup, pageLoader, "", 1)
	// An attribute's value may hold anything but its quote.
	if found := element.FindAllString(quoted.ReplaceAllString(markup, `=""`), -1); len(found) != 2 { // the bundle and its loader
		t.Errorf("the page holds %q", found)
	}
}

func TestHostilePage(t *testing.T) { checkHostile(t, write(t, "html", hostile(), Options{})) }

// TestBundleIsCurrent: the bundle says which sources it was built from, so that
// this holds without npm as well; `make ui` builds it anew.
func TestBundleIsCurrent(t *testing.T) {
	const ui = "../../ui/"
	files := []string{"package.json", "package-lock.json", "tsconfig.json", "vite.config.ts"}
	entries, err := os.ReadDir(ui + "src")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		files = append(files, "src/"+e.Name())
	}
	slices.Sort(files)
	hash := sha256.New()
	for _, file := range files {
		content, err := os.ReadFile(ui + file)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(hash, "%s\x00%s\x00", file, content)
	}
	if want := fmt.Sprintf("Built by ui/ from %x", hash.Sum(nil)); !strings.Contains(pageScript[:200], want) {
		t.Errorf("assets/charts.js is not built from the sources in ui/: run make ui")
	}
}

func TestRepeat(t *testing.T) {
	r := sample(6)
	r.Plan.Contenders = r.Plan.Contenders[:1]
	r.Plan.Contenders[0].ID = "it's"
	want := `cnibench run --arena lab --suite quick --contenders 'it'\''s' --rounds 6 --duration 3s --warmup 1s --seed 4711 ` +
		`--nodes 2 --underlay auto --mtu 1500 --cpus client=0,server=1`
	if got := repeat(r); got != want {
		t.Errorf("repeat = %s, want %s", got, want)
	}
	r.Baseline, r.Plan.Settings, r.Plan.Warmup = "macvlan", map[string]string{"cni-conf": "a b.conflist", "cni-transport": "vxlan"}, 0
	want = `cnibench run --arena lab --suite quick --contenders 'it'\''s' --rounds 6 --duration 3s --seed 4711 ` +
		`--baseline macvlan --cni-conf 'a b.conflist' --cni-transport vxlan`
	if got := repeat(r); got != want {
		t.Errorf("repeat = %s, want %s", got, want)
	}
}
