package report

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html"
	"regexp"
	"strings"
	"testing"
)

var policyHash = regexp.MustCompile(`sha256-[A-Za-z0-9&#;+/]+=`)

// TestScriptHash: the policy lets the bundle run, and only it.
func TestScriptHash(t *testing.T) {
	page := write(t, "html", sample(6), Options{})
	_, script, _ := strings.Cut(page, "<script>")
	script, _, _ = strings.Cut(script, "</script>")
	sum := sha256.Sum256([]byte(script))
	want := "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
	if got := html.UnescapeString(policyHash.FindString(page)); got != want {
		t.Errorf("policy has %s, the script is %s", got, want)
	}
}

func TestPageIsOneFile(t *testing.T) {
	if size := len(pageScript); size > 700<<10 {
		t.Errorf("bundle of %d bytes, want at most 700 KiB", size)
	}
	for _, notice := range []string{"Apache ECharts", "Baidu Inc.", "Redistributions in binary form"} {
		if !strings.Contains(pageScript[:8192], notice) {
			t.Errorf("the bundle's head lacks the notice %q", notice)
		}
	}
	page := strings.Replace(write(t, "html", sample(6), Options{}), pageScript, "", 1)
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
	page = strings.Replace(page, pageScript, "", 1)
	before, rest, _ := strings.Cut(page, `id="data">`)
	data, after, _ := strings.Cut(rest, "</script>")
	// An attribute's value may hold anything but its quote.
	markup := quoted.ReplaceAllString(before+after, `=""`)
	if found := element.FindAllString(markup, -1); len(found) != 2 { // the data and the bundle
		t.Errorf("the page holds %q", found)
	}
	var into struct{ Charts []map[string]any }
	if err := json.Unmarshal([]byte(data), &into); err != nil {
		t.Errorf("the data is no JSON: %v", err)
	}
	if strings.ContainsAny(data, "<>") {
		t.Error("the data holds < or >")
	}
}

func TestHostilePage(t *testing.T) { checkHostile(t, write(t, "html", hostile(), Options{})) }

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
