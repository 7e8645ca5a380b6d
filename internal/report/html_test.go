package report

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/text"
)

var carried = regexp.MustCompile(`<script type="text/plain" id="([a-z-]+)">([A-Za-z0-9+/=]*)</script>`)

// readable is a page without its bundle and with its data unpacked.
func readable(page string) string {
	return carried.ReplaceAllStringFunc(page, func(one string) string {
		parts := carried.FindStringSubmatch(one)
		content, err := unpacked(parts[2])
		if err != nil {
			panic(err)
		}
		if parts[1] == "bundle" {
			content = strings.Replace(content, pageScript, "BUNDLE", 1)
		}
		return `<script type="text/plain" id="` + parts[1] + `">` + content + "</script>"
	})
}

// unpacked is what packed.Text packed.
func unpacked(packed string) (string, error) {
	gz, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(packed)))
	if err != nil {
		return "", err
	}
	content, err := io.ReadAll(gz)
	return string(content), err
}

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

func TestHostilePage(t *testing.T) {
	page := write(t, "html", hostile(), Options{})
	checkHostile(t, page)
	// The names are there, as text: nothing was left out to be safe.
	names := data(t, page).Contenders
	for _, name := range hostileNames {
		if line := text.SafeLine(name); !slices.Contains(names, line) || !strings.Contains(page, html.EscapeString(line)) {
			t.Errorf("the page does not show %q as text", line)
		}
	}
}

// shownData is what the page's script gets, as far as tests look at it.
type shownData struct {
	Contenders, Steps, Metrics []string
	Charts                     []struct{ ID string }
	Results                    [][]any
}

func data(t *testing.T, page string) (d shownData) {
	t.Helper()
	for _, part := range carried.FindAllStringSubmatch(page, -1) {
		if part[1] != "data" {
			continue
		}
		text, err := unpacked(part[2])
		if err == nil {
			err = json.Unmarshal([]byte(text), &d)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return d
}

var (
	sections = regexp.MustCompile(`<section class="view" id="([a-z]+)"`)
	links    = regexp.MustCompile(`<a href="#([a-z]+)">`)
	drawn    = regexp.MustCompile(`(?s)<figure [^>]*>.*?</figure>`)
	chartID  = regexp.MustCompile(`class="chart" id="([^"]+)" role="img" aria-label="[^"]`)
	rows     = regexp.MustCompile(`<tr data-c="(\d+)"[^>]*>\s*<th scope="row">(?:<bdi>)?([^<]+)`)
)

// TestPageViews: a page has the views for which the report has something, each with a link.
func TestPageViews(t *testing.T) {
	for name, test := range map[string]struct {
		report *analysis.Report
		want   string
	}{
		"empty":  {samples["empty"], "overview method"},
		"ladder": {ladder(), "overview latency findings results method"},
		"few":    {sample(3), "overview throughput latency efficiency findings results method"},
		"full":   {full(), "overview throughput latency efficiency resources choice published seconds findings results method"},
	} {
		page := write(t, "html", test.report, Options{})
		nav, _, _ := strings.Cut(page, "</nav>")
		if got := strings.Join(firsts(sections.FindAllStringSubmatch(page, -1)), " "); got != test.want {
			t.Errorf("%s: views %s, want %s", name, got, test.want)
		}
		if got := strings.Join(firsts(links.FindAllStringSubmatch(nav, -1)), " "); got != test.want {
			t.Errorf("%s: links to %s, want %s", name, got, test.want)
		}
	}
}

func firsts(found [][]string) (out []string) {
	for _, f := range found {
		out = append(out, f[1])
	}
	return out
}

// TestPageFigures: every chart has its data, and its figures as a table for those who see no
// chart; a row has the figures of the contender whose place and name it has.
func TestPageFigures(t *testing.T) {
	for name, r := range map[string]*analysis.Report{"quick": sample(6), "few": sample(3), "ladder": ladder(), "full": full()} {
		page := write(t, "html", r, Options{})
		d := data(t, page)
		var ids []string
		for _, figure := range drawn.FindAllString(page, -1) {
			if strings.Contains(figure, `id="chart-decision"`) {
				continue // questions and answers, as a list
			}
			ids = append(ids, firsts(chartID.FindAllStringSubmatch(figure, -1))...)
			if !strings.Contains(figure, "<tbody>") || !strings.Contains(figure, "<figcaption><b>") {
				t.Errorf("%s: a chart without a title or a table: %.200s", name, figure)
			}
		}
		var want []string
		for _, c := range d.Charts {
			want = append(want, c.ID)
		}
		slices.Sort(ids)
		slices.Sort(want)
		if len(want) == 0 || !slices.Equal(slices.Compact(slices.Clone(ids)), want) || len(ids) != len(want) {
			t.Errorf("%s: charts %q, data of %q", name, ids, want)
		}
		for _, row := range rows.FindAllStringSubmatch(page, -1) {
			if place, err := strconv.Atoi(row[1]); err != nil || place >= len(d.Contenders) || d.Contenders[place] != row[2] && !slices.Contains(d.Steps, row[2]) {
				t.Errorf("%s: a row of %s has the place %s", name, row[2], row[1])
			}
		}
		if len(d.Results) != len(r.Results) {
			t.Fatalf("%s: %d results, want %d", name, len(d.Results), len(r.Results))
		}
		for i, row := range d.Results {
			f := r.Results[i]
			if c, m := d.Contenders[int(row[2].(float64))], d.Metrics[int(row[3].(float64))]; c != f.Contender || m != layout.MetricLabel(f.Metric) || row[6] != layout.Value(&f) {
				t.Errorf("%s: result %d is %s of %s, %v; want %s of %s, %s", name, i, m, c, row[6], f.Metric, f.Contender, layout.Value(&f))
			}
		}
	}
}

// TestPageOrder: who is better comes first, in the heat map of ratios and in the tables of figures, which the
// baseline leads.
func TestPageOrder(t *testing.T) {
	page := write(t, "html", sample(6), Options{})
	for class, want := range map[string]string{
		"heat":    "macvlan calico-noencap flannel-host-gw",
		"summary": "host macvlan calico-noencap",
	} {
		_, table, _ := strings.Cut(page, `<table class="`+class)
		table, _, _ = strings.Cut(table, "</table>")
		var got []string
		for _, row := range rows.FindAllStringSubmatch(table, -1) {
			got = append(got, row[2])
		}
		if head := strings.Join(got[:min(3, len(got))], " "); head != want {
			t.Errorf("the %s begins with %s, want %s", class, head, want)
		}
	}
}

// TestPageSaysWhatIsMissing: no sample, no interval, no figure of one contender.
func TestPageSaysWhatIsMissing(t *testing.T) {
	for name, test := range map[string]struct {
		report *analysis.Report
		want   []string
	}{
		"empty": {samples["empty"], []string{`<div class="answer"><p>No valid sample`}},
		"few":   {sample(3), []string{"Too few rounds for an interval", `<td class="num none" data-s="2">no valid sample</td>`, "ipvlan-l2", "kernel lacks CONFIG_IPVLAN"}},
	} {
		page := write(t, "html", test.report, Options{})
		for _, want := range test.want {
			if !strings.Contains(page, want) {
				t.Errorf("%s: the page lacks %q", name, want)
			}
		}
	}
	if strings.Contains(write(t, "html", sample(6), Options{}), "Too few rounds for an interval") {
		t.Error("six rounds are called too few")
	}
}

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
