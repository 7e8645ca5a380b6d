package web

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/analysis"
)

// fake is a run whose version and loads a test decides and counts.
type fake struct {
	version string
	err     error // of both
	unread  error // of the load alone
	loads   int
}

func (f *fake) run(name string) Run {
	return Run{
		Name:    name,
		Version: func() (string, error) { return f.version, f.err },
		Load: func() (*analysis.Report, error) {
			f.loads++
			return &analysis.Report{Baseline: "host", Run: analysis.RunInfo{ID: name + " at " + f.version, Suite: "quick"}}, errors.Join(f.err, f.unread)
		},
	}
}

func ask(t *testing.T, s *http.Server, method, path, host string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	r.Host = host
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.Handler.ServeHTTP(w, r)
	return w.Result()
}

func text(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestIsLoopback(t *testing.T) {
	got := map[string]bool{}
	want := map[string]bool{
		"localhost": true, "localhost:80": true, "LOCALHOST:1": true, "127.0.0.1": true, "127.0.0.1:8080": true, "127.1.2.3:1": true, "[::1]:9": true, "[::1]": true, "::1": true,
		"": false, ":80": false, "example.com": false, "localhost.example.com:80": false, "127.0.0.1.nip.io:80": false, "10.0.0.1:80": false,
		"[::]:80": false, "0.0.0.0:80": false, "evil@localhost": false, "localhost:80:80": false, "[::1%lo]:80": false,
	}
	for host := range want {
		got[host] = IsLoopback(host)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestServes(t *testing.T) {
	one, two := &fake{version: "1"}, &fake{version: "1"}
	s := NewServer([]Run{one.run("<b>first</b>"), two.run("second")}, slog.New(slog.DiscardHandler))
	for name, test := range map[string]struct {
		method, path, host string
		status             int
		holds, lacks       string
	}{
		"two at once":       {"GET", "/both/", "localhost:1", 200, "A: b&gt;, B: second", "<b>first"},
		"a run":             {"GET", "/runs/2/", "127.0.0.1:1", 200, "second at 1", "first at"},
		"its place":         {"GET", "/runs/1/", "[::1]:1", 200, `run 1 of 2 · <a href="/">both runs</a>`, "<b>first"},
		"another run":       {"GET", "/runs/3/", "localhost", 404, "", "second"},
		"no run":            {"GET", "/runs/x/", "localhost", 404, "", "second"},
		"a file":            {"GET", "/runs/1/samples.jsonl", "localhost", 404, "", "second"},
		"a way out":         {"GET", "/runs/1/..%2f..%2fetc/passwd", "localhost", 404, "", "root"},
		"another name":      {"GET", "/runs/1/", "evil.example", 403, "localhost only", "first"},
		"no name":           {"GET", "/", "", 403, "localhost only", "first"},
		"a change":          {"POST", "/runs/1/", "localhost", 405, "nothing can be changed", "first"},
		"a removal":         {"DELETE", "/runs/1/", "localhost", 405, "", "first"},
		"of what is barred": {"OPTIONS", "/", "localhost", 405, "", "first"},
	} {
		t.Run(name, func(t *testing.T) {
			r := ask(t, s, test.method, test.path, test.host)
			body := text(t, r)
			if r.StatusCode != test.status || !strings.Contains(body, test.holds) || strings.Contains(body, test.lacks) {
				t.Errorf("status %d, want %d with %q and without %q:\n%.300s", r.StatusCode, test.status, test.holds, test.lacks, body)
			}
			for header, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin"} {
				if got := r.Header.Get(header); got != want {
					t.Errorf("%s: %q, want %q", header, got, want)
				}
			}
			if !strings.Contains(r.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
				t.Error("the page may be framed")
			}
		})
	}
	if r := ask(t, s, "GET", "/", "localhost"); r.StatusCode != 302 || r.Header.Get("Location") != "/both/" {
		t.Errorf("the two runs are not shown at once: %d, %s", r.StatusCode, r.Header.Get("Location"))
	}
	three := NewServer([]Run{one.run("<b>first</b>"), two.run("second"), one.run("third")}, slog.New(slog.DiscardHandler))
	if r := ask(t, three, "GET", "/", "localhost:1"); r.StatusCode != 200 || !strings.Contains(text(t, r), `<a href="/runs/2/"><bdi>second</bdi></a>`) {
		t.Error("no list of three runs")
	}
	if r := ask(t, three, "GET", "/both/", "localhost"); r.StatusCode != 404 {
		t.Errorf("three runs at once: %d", r.StatusCode)
	}
	single := NewServer([]Run{one.run("only")}, slog.New(slog.DiscardHandler))
	if r := ask(t, single, "GET", "/", "localhost"); r.StatusCode != 302 || r.Header.Get("Location") != "/runs/1/" {
		t.Errorf("the only run is not shown at once: %d, %s", r.StatusCode, r.Header.Get("Location"))
	}
}

func TestFollows(t *testing.T) {
	f := &fake{version: "1"}
	now := time.Unix(0, 0)
	p := &page{runs: []Run{f.run("r")}, now: func() time.Time { return now }}
	get := func(method string, header ...string) *http.Response {
		r := httptest.NewRequest(method, "/", nil)
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		p.serve(w, r, slog.New(slog.DiscardHandler))
		return w.Result()
	}
	first := get("GET")
	tag := first.Header.Get("ETag")
	if !strings.Contains(text(t, first), "r at 1") || tag == "" {
		t.Fatal("no page")
	}
	if r := get("HEAD"); r.Header.Get("ETag") != tag || text(t, r) != "" || f.loads != 1 {
		t.Errorf("HEAD: tag %s, %d loads", r.Header.Get("ETag"), f.loads)
	}
	if r := get("GET", "If-None-Match", tag); r.StatusCode != http.StatusNotModified || f.loads != 1 {
		t.Errorf("the same page again: status %d, %d loads", r.StatusCode, f.loads)
	}
	f.version = "2"
	if r := get("HEAD"); r.Header.Get("ETag") != tag {
		t.Error("another page too early")
	}
	now = now.Add(rest)
	if r := get("HEAD"); r.Header.Get("ETag") == tag || f.loads != 1 {
		t.Errorf("the news does not show, or HEAD loaded the run: %d loads", f.loads)
	}
	if r := get("GET"); !strings.Contains(text(t, r), "r at 2") || f.loads != 2 {
		t.Errorf("not the newer page; %d loads", f.loads)
	}
	now = now.Add(rest)
	f.version, f.unread = "3", errors.New("samples.jsonl: permission denied")
	for _, method := range []string{"GET", "HEAD", "GET"} {
		if r := get(method); r.StatusCode != 500 || method == "GET" && !strings.Contains(text(t, r), "permission denied") {
			t.Errorf("%s: status %d for a run that can't be read", method, r.StatusCode)
		}
	}
	if f.loads != 3 {
		t.Errorf("%d loads: a run that can't be read is tried again at once", f.loads)
	}
	f.unread = nil // the file's own time stays
	now = now.Add(rest)
	if r := get("HEAD"); r.StatusCode != 500 {
		t.Errorf("HEAD says %d of a page that nobody has made", r.StatusCode)
	}
	if r := get("GET"); r.StatusCode != 200 || !strings.Contains(text(t, r), "r at 3") {
		t.Error("it does not come back")
	}
	if r := get("HEAD"); r.StatusCode != 200 || f.loads != 4 {
		t.Errorf("status %d, %d loads", r.StatusCode, f.loads)
	}
	now, f.err = now.Add(rest), errors.New("run.json: no such file")
	if get("HEAD").StatusCode != 500 || get("GET").StatusCode != 500 || f.loads != 4 {
		t.Errorf("a run that is gone is shown, or loaded: %d loads", f.loads)
	}
}

// stuck is a client that takes nothing until it is let go.
type stuck struct {
	http.ResponseWriter
	writing, free chan struct{}
	once          sync.Once
}

func (s *stuck) Write(b []byte) (int, error) {
	s.once.Do(func() { close(s.writing) })
	<-s.free
	return s.ResponseWriter.Write(b)
}

func TestWhoDoesNotReadBlocksNobody(t *testing.T) {
	f := &fake{version: "1"}
	p := &page{runs: []Run{f.run("r")}, now: time.Now}
	log := slog.New(slog.DiscardHandler)
	s := &stuck{ResponseWriter: httptest.NewRecorder(), writing: make(chan struct{}), free: make(chan struct{})}
	var all sync.WaitGroup
	all.Go(func() { p.serve(s, httptest.NewRequest("GET", "/", nil), log) })
	<-s.writing
	served := make(chan int)
	go func() {
		w := httptest.NewRecorder()
		p.serve(w, httptest.NewRequest("GET", "/", nil), log)
		served <- w.Code
	}()
	select {
	case code := <-served:
		if code != 200 {
			t.Errorf("status %d", code)
		}
	case <-time.After(30 * time.Second):
		t.Error("one reader keeps another from the page")
	}
	close(s.free)
	all.Wait()
}
