// Package web serves the report pages of runs, read-only and for this machine
// only. It may not read a run itself, compute or change anything: what it shows
// comes from the functions that it is given. Next: page.go.
package web

import (
	_ "embed" // the list of runs
	"fmt"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report"
	words "github.com/cnibench/cnibench/internal/text"
)

// Run is a run to show.
type Run struct {
	Name string
	// Version changes when there is something new to show, and is cheap to ask.
	Version func() (string, error)
	Load    func() (*analysis.Report, error)
}

//go:embed runs.html
var runsSource string

var runsTemplate = template.Must(template.New("runs").Funcs(template.FuncMap{"place": func(i int) int { return i + 1 }}).Parse(runsSource))

// NewServer serves the runs: each at /runs/N/, two over each other at /both/, and at / the only
// run, the two, or a list of more. It answers GET and HEAD, and only who asks for this machine by a name of its own: another
// site's name that was made to lead here gets nothing.
func NewServer(runs []Run, log *slog.Logger) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		if len(runs) <= 2 {
			http.Redirect(w, r, []string{"/runs/1/", "/both/"}[len(runs)-1], http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if err := runsTemplate.Execute(words.SafeWriter(w), runs); err != nil {
			log.Warn("list of runs", "err", err)
		}
	})
	pages := make([]*page, len(runs))
	for i, run := range runs {
		pages[i] = &page{runs: []Run{run}, now: time.Now}
		if len(runs) > 1 {
			pages[i].place = fmt.Sprintf("run %d of %d", i+1, len(runs))
			pages[i].links = []report.Link{{Address: "/", Name: []string{"all runs", "both runs"}[max(0, 3-len(runs))]}}
		}
	}
	if len(runs) == 2 {
		both := &page{runs: runs, now: time.Now, place: "two runs", links: []report.Link{{Address: "/runs/1/", Name: "A alone"}, {Address: "/runs/2/", Name: "B alone"}}}
		mux.HandleFunc("GET /both/{$}", func(w http.ResponseWriter, r *http.Request) { both.serve(w, r, log) })
	}
	mux.HandleFunc("GET /runs/{n}/{$}", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.PathValue("n"))
		if err != nil || n < 1 || n > len(pages) {
			http.NotFound(w, r)
			return
		}
		pages[n-1].serve(w, r, log)
	})
	return &http.Server{
		Handler:           guard(mux),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

// guard lets in what may be asked, and says to browsers what the answer may do.
// The pages themselves carry a stricter policy for what they load.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self' 'unsafe-inline'; img-src blob:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-cache")
		switch {
		case !IsLoopback(r.Host):
			http.Error(w, "cnibench explore answers to localhost only", http.StatusForbidden)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "nothing can be changed here", http.StatusMethodNotAllowed)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// IsLoopback says that a host, with or without a port, is this machine by
// loopback: an address of it, or localhost.
func IsLoopback(hostPort string) bool {
	host := hostPort
	if h, _, err := net.SplitHostPort(hostPort); err == nil {
		host = h
	} else if inner, ok := strings.CutPrefix(hostPort, "["); ok {
		host = strings.TrimSuffix(inner, "]")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Zone() == "" && addr.IsLoopback()
}
