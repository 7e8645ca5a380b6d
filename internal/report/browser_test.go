package report

import (
	"context"
	"fmt"
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
		const why = "no Chromium: apt-get install -y --no-install-recommends chromium, then go test ./internal/report -run Browser"
		if os.Getenv("CI") == "true" {
			t.Fatal(why)
		}
		t.Skip(why)
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

// beforeData is the document without the data, the bundle and what follows.
func beforeData(t *testing.T, dom string) string {
	t.Helper()
	body, _, found := strings.Cut(dom, `<script type="application/json"`)
	if !found {
		t.Fatal("the document has no data")
	}
	return body
}

func TestBrowser(t *testing.T) {
	b := newBrowser(t)
	for _, name := range []string{"quick", "few", "ladder", "hostile", "empty"} {
		t.Run(name, func(t *testing.T) {
			r := samples[name]
			dom, requests := b.open(t, write(t, "html", r, Options{}))
			if got := root.FindString(dom); got != `<html lang="en">` {
				t.Errorf("the page says %s", got)
			}
			if len(requests) > 0 {
				t.Errorf("the page asked for %q", requests)
			}
			body := beforeData(t, dom)
			v := newView(finite(r))
			charts := 0
			for i := range v.Groups {
				for _, c := range v.charts(&v.Groups[i], fmt.Sprintf("chart-%d", i+1)) {
					charts++
					checkChart(t, body, c)
				}
			}
			if name != "empty" && charts == 0 {
				t.Error("no chart")
			}
			if got := strings.Count(body, "<svg"); got != charts {
				t.Errorf("%d drawings, want %d", got, charts)
			}
		})
	}
}

// checkChart wants a drawing that shows what the chart is of.
func checkChart(t *testing.T, body string, c chart) {
	t.Helper()
	_, at, found := strings.Cut(body, `id="`+c.ID+`"`)
	if !found {
		t.Errorf("no element %s", c.ID)
		return
	}
	svg, _, found := strings.Cut(at, "</svg>")
	if !found || strings.Contains(svg, "<details") {
		t.Errorf("%s: no drawing", c.ID)
		return
	}
	shapes, atLeast := strings.Count(svg, "<path"), len(c.Rows)+len(c.Series)+len(c.Points)
	if shapes < atLeast {
		t.Errorf("%s: %d shapes, want at least %d", c.ID, shapes, atLeast)
	}
	for _, axis := range []*axis{c.X, c.Y} {
		if axis != nil && c.Kind != "curves" && !strings.Contains(svg, axis.Label) {
			t.Errorf("%s: no axis named %q", c.ID, axis.Label)
		}
	}
	if strings.Contains(svg, "NaN") {
		t.Errorf("%s: NaN in the drawing", c.ID)
	}
}

// TestBrowserSees proves that a fault of the page would be noticed above: an
// outside request by the policy, and without a policy by the proxy.
func TestBrowserSees(t *testing.T) {
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
