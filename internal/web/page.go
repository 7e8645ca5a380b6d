package web

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/report"
)

// A page is made anew when its run has gone on, but at most once in rest, and
// never for more than a share of the time: the machine may be the one that is
// being measured.
const (
	rest  = 5 * time.Second
	share = 20 // of the time that making it took
)

// traceBudget is far more than a report in one file has: nobody sends it around.
const traceBudget = 64 << 20

// page is one run's, as it was made last.
type page struct {
	run   Run
	place string // "2 of 3", "" for the only run
	now   func() time.Time

	mu   sync.Mutex
	tag  string // of body
	body []byte
	next time.Time // not made again before
}

func (p *page) serve(w http.ResponseWriter, r *http.Request, log *slog.Logger) {
	p.mu.Lock()
	defer p.mu.Unlock()
	tag, err := p.current()
	if err == nil && r.Method == http.MethodGet && tag != p.tag {
		err = p.make(tag)
	}
	if err != nil {
		log.Warn("page", "run", p.run.Name, "err", err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("ETag", tag)
	if r.Method == http.MethodHead {
		return
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(p.body))
}

// current is the tag of what is there to show: the page as it is, while it is
// too early for another.
func (p *page) current() (string, error) {
	if p.tag != "" && p.now().Before(p.next) {
		return p.tag, nil
	}
	version, err := p.run.Version()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(version))), nil
}

func (p *page) make(tag string) error {
	begin := p.now()
	rep, err := p.run.Load()
	if err != nil {
		return err
	}
	at := report.Page{Live: tag, TraceBudget: traceBudget}
	if p.place != "" {
		at.Place, at.Up = p.place, "/"
	}
	var body bytes.Buffer
	if err := report.WritePage(&body, rep, at); err != nil {
		return err
	}
	p.tag, p.body = tag, body.Bytes()
	p.next = p.now().Add(max(rest, share*p.now().Sub(begin)))
	return nil
}
