package report

import (
	"bytes"
	"context"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// browser opens pages in a real Chromium whose every request would go through
// a proxy that notes it.
type browser struct {
	program, proxy string
	mu             sync.Mutex
	requests       []string
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	b := &browser{}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			b.program = path
			break
		}
	}
	if b.program == "" {
		needs.Missing(t, "no Chromium: apt-get install -y --no-install-recommends chromium, then make test-slow")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		b.requests = append(b.requests, r.Method+" "+r.Host+r.URL.Path)
		b.mu.Unlock()
		http.Error(w, "no way out", http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	b.proxy = server.Listener.Addr().(*net.TCPAddr).String()
	return b
}

// chromiums are hosts that Chromium itself asks, whatever the page; the proxy
// refuses these too.
var chromiums = regexp.MustCompile(`^(CONNECT|GET|POST) ([a-z0-9-]+\.)*(google\.com|googleapis\.com|gvt1\.com)[:/]`)

// open is the page's document after its scripts have run, and the requests
// that the page made.
func (b *browser) open(t *testing.T, page string) (dom string, requests []string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "cnibench-chromium")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		// Its helpers may still write for a moment after it has ended.
		for range 50 {
			if os.RemoveAll(dir) == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	file := filepath.Join(dir, "report.html")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+filepath.Join(dir, "profile"),
		"--proxy-server="+b.proxy, "--virtual-time-budget=5000", "--window-size=1280,900", "--dump-dom", "file://"+file)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", b.program, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.requests {
		if !chromiums.MatchString(r) {
			requests = append(requests, r)
		}
	}
	b.requests = nil
	return string(out), requests
}

var root = regexp.MustCompile(`<html[^>]*>`)

// TestBrowser: whatever is shown, the page has no fault and asks for nothing.
func TestBrowser(t *testing.T) {
	needs.Slow(t, "drives a browser")
	b := newBrowser(t)
	for name, r := range pages() {
		t.Run(name, func(t *testing.T) {
			dom, requests := b.open(t, write(t, "html", r, Options{}))
			if got := root.FindString(dom); got != `<html lang="en">` {
				t.Errorf("the page says %s", got)
			}
			if len(requests) > 0 {
				t.Errorf("the page asked for %q", requests)
			}
		})
	}
}

// pages are the samples and three that only pages can show.
func pages() map[string]*analysis.Report {
	all := maps.Clone(samples)
	all["full"], all["large"], all["loaded"] = full(), large(), loaded()
	return all
}

// TestPlaywright drives the pages and looks at them: ui/test says what they must do.
func TestPlaywright(t *testing.T) {
	needs.Slow(t, "drives a browser")
	b := newBrowser(t)
	const ui = "../../ui"
	if _, err := os.Stat(ui + "/node_modules/playwright-core"); err != nil {
		needs.Missing(t, "no Playwright: install Node.js, run npm --prefix ui ci, then go test ./internal/report -run Playwright")
	}
	dir := os.Getenv("CNIBENCH_PAGES")
	if dir == "" {
		dir = t.TempDir()
	}
	save := func(name, page string) {
		if err := os.WriteFile(filepath.Join(dir, name+".html"), []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, r := range pages() {
		save(name, write(t, "html", r, Options{}))
	}
	for name, r := range map[string]*analysis.Report{"live-1": ladder(), "live-2": sample(6)} {
		var page bytes.Buffer
		if err := WritePage(&page, r, Page{Live: `"0"`, Place: "run 1 of 2", Links: []Link{{"/", "all runs"}}}); err != nil {
			t.Fatal(err)
		}
		save(name, page.String())
	}
	for name, r := range map[string]func() *analysis.Report{"both": full} {
		var page bytes.Buffer
		if err := WriteOverlay(&page, Run{"runs/monday", r()}, Run{"runs/tuesday", later(r())}, Page{}); err != nil {
			t.Fatal(err)
		}
		save(name, page.String())
	}
	cmd := exec.CommandContext(t.Context(), "node", "--test", "--test-reporter=spec", "test/axes.test.mjs", "test/page.test.mjs", "test/looks.test.mjs")
	cmd.Dir = ui
	cmd.Env = append(os.Environ(), "CNIBENCH_PAGES="+dir, "CHROMIUM="+b.program)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, line := range strings.Split(string(out), "\n") {
		if strings.Contains(line, "loaded after") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// TestBrowserSees proves that a fault of the page would be noticed above: an
// outside request by the policy, and without a policy by the proxy.
func TestBrowserSees(t *testing.T) {
	needs.Slow(t, "drives a browser")
	b := newBrowser(t)
	const image = `<img src="http://outside.example/x.png">`
	page := strings.Replace(write(t, "html", &analysis.Report{}, Options{}), "</body>", image+"</body>", 1)
	dom, requests := b.open(t, page)
	if got := root.FindString(dom); !strings.Contains(got, "blocked: img-src http://outside.example/x.png") {
		t.Errorf("the page says %s, want that an image was blocked", got)
	}
	if len(requests) > 0 {
		t.Errorf("in spite of the policy, the page asked for %q", requests)
	}
	page = regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`).ReplaceAllString(page, "")
	if _, requests = b.open(t, page); len(requests) == 0 {
		t.Error("the proxy did not see a request")
	}
}
