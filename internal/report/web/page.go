package web

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
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

// patience is how long a reader may take over a page.
const patience = time.Minute

// page is one run's, or that of two runs over each other, as it was made last.
type page struct {
	runs  []Run
	place string        // "2 of 3", "" for the only run
	links []report.Link // to other pages
	now   func() time.Time
	said  atomic.Value // the fault that was logged last: pages ask every two seconds

	mu   sync.Mutex
	tag  string    // of body, or of what err is about
	body []byte    // never changed, only replaced: readers keep the one they began
	err  error     // why there is no body
	next time.Time // not made again before
}

// serve holds the lock for as long as a page is looked up or made, never while
// a reader takes it.
func (p *page) serve(w http.ResponseWriter, r *http.Request, log *slog.Logger) {
	tag, body, err := p.latest(r.Method == http.MethodGet)
	if err != nil {
		if p.said.Swap(err.Error()) != err.Error() {
			log.Warn("page", "run", p.runs[0].Name, "err", err)
		}
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	p.said.Store("")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("ETag", tag)
	if r.Method == http.MethodHead {
		return
	}
	// From here on: making a page of a large run may take longer.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience)) // a recorder in tests has none
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// latest is the page of what is there to show. Where it is not yet made, it is
// made if whole asks for it; else its tag alone comes back. A run that could
// not be shown is tried again like one that has gone on: after its rest.
func (p *page) latest(whole bool) (tag string, body []byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	tag, err = p.current()
	if err != nil {
		return "", nil, err
	}
	if whole && (tag != p.tag || p.err != nil && !p.now().Before(p.next)) {
		p.make(tag)
	}
	if tag == p.tag && p.err != nil {
		return "", nil, p.err
	}
	return tag, p.body, nil
}

// current is the tag of what is there to show: the page as it is, while it is
// too early for another.
func (p *page) current() (string, error) {
	if p.tag != "" && p.now().Before(p.next) {
		return p.tag, nil
	}
	versions := ""
	for _, run := range p.runs {
		version, err := run.Version()
		if err != nil {
			return "", err
		}
		versions += version + "\n"
	}
	return fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(versions))), nil
}

// make sets the page, or why there is none, and the rest after it.
func (p *page) make(tag string) {
	begin := p.now()
	p.tag = tag
	p.body, p.err = p.render(tag)
	p.next = p.now().Add(max(rest, share*p.now().Sub(begin)))
}

func (p *page) render(tag string) ([]byte, error) {
	var loaded []report.Run
	for _, run := range p.runs {
		rep, err := run.Load()
		if err != nil {
			return nil, err
		}
		loaded = append(loaded, report.Run{Dir: run.Name, Report: rep})
	}
	at := report.Page{Live: tag, TraceBudget: traceBudget, Place: p.place, Links: p.links}
	var body bytes.Buffer
	var err error
	if len(loaded) == 2 {
		err = report.WriteOverlay(&body, loaded[0], loaded[1], at)
	} else {
		err = report.WritePage(&body, loaded[0].Report, at)
	}
	return body.Bytes(), err
}
