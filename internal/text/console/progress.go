package console

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	pretty "github.com/jedib0t/go-pretty/v6/text"
	"github.com/mattn/go-runewidth"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/cnibench/cnibench/internal/text"
)

// quiet is how long a log stays without a line while one round runs.
const quiet = 10 * time.Second

// barWidth leaves a terminal of 80 columns room for the words.
const barWidth = 24

// Progress shows how far a run is: one live line on a terminal, elsewhere a
// plain line when the round changes or quiet has passed, never a carriage
// return. Its methods may be called from several goroutines.
type Progress struct {
	out io.Writer
	now func() time.Time

	container *mpb.Progress // nil: plain lines
	begin     sync.Once     // makes the bar at the first step
	bar       *mpb.Bar

	mu          sync.Mutex // guards what follows; never held in a call of mpb, which calls line
	done, total int
	text        string
	end         time.Time // when the run will be done, as the caller thinks
	table       []string  // lines above the bar
	subject     string    // the last new thing that a plain line said
	printed     time.Time // when that was
	ended       bool
}

// NewProgress shows progress on w; total may be 0 until it is known.
func NewProgress(w *os.File, total int) *Progress {
	p := &Progress{out: w, now: time.Now, total: total}
	if IsTerminal(w) {
		p.container = mpb.New(mpb.WithOutput(w), mpb.WithRefreshRate(200*time.Millisecond))
	}
	return p
}

// Step says that done of total steps are sealed and what is going on now; a
// remaining time of 0 or less is not shown.
func (p *Progress) Step(done, total int, text string, remaining time.Duration) {
	p.mu.Lock()
	now := p.now()
	p.done, p.total, p.text, p.end = done, total, text, time.Time{}
	if remaining > 0 {
		p.end = now.Add(remaining)
	}
	ended := p.ended
	if p.container == nil && !ended {
		p.printLine(now)
	}
	p.mu.Unlock()
	if p.container == nil || ended {
		return
	}
	p.begin.Do(func() {
		style := mpb.BarStyle().Lbound("").Rbound("").Filler("━").Tip("━").Padding("─")
		p.bar = p.container.New(0, style, mpb.BarWidth(barWidth), mpb.BarFillerTrim(), mpb.AppendDecorators(
			decor.Any(func(s decor.Statistics) string { return p.line(s.AvailableWidth - barWidth) })),
			mpb.BarExtender(mpb.BarFillerFunc(p.drawTable), true))
	})
	if p.bar == nil {
		return
	}
	p.bar.SetTotal(int64(total), false)
	p.bar.SetCurrent(int64(done))
}

// line is what stands behind the bar, in that many columns; the remaining time
// counts down between steps. The text comes last, so that it is what a narrow
// terminal cuts.
func (p *Progress) line(columns int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := fmt.Sprintf("  %d/%d%s  %s", p.done, p.total, p.timeLeft(p.now()), text.SafeLine(p.text))
	return runewidth.Truncate(line, max(columns, 0), "…")
}

// timeLeft is ", 2m10s left", or "" where it is not known or has passed.
func (p *Progress) timeLeft(now time.Time) string {
	left := p.end.Sub(now).Round(time.Second)
	if p.end.IsZero() || left <= 0 {
		return ""
	}
	return fmt.Sprintf(", %s left", left)
}

// printLine prints a line if it says something new: "round 2/5: canal" does after
// round 1/5, "round 2/5: canal: dts" after it only adds detail.
func (p *Progress) printLine(now time.Time) {
	subject, _, _ := strings.Cut(p.text, ": ")
	if subject == p.subject && now.Sub(p.printed) < quiet {
		return
	}
	p.subject, p.printed = subject, now
	fmt.Fprintf(p.out, "%d/%d%s  %s\n", p.done, p.total, p.timeLeft(now), text.SafeLine(p.text))
}

// Live says that progress is drawn on a terminal, where Show has a place.
func (p *Progress) Live() bool { return p.container != nil }

// Show draws the text above the bar, in place of the text before it, until
// Done. Of a text that is higher than the terminal the beginning is shown. Where
// progress is not live nothing is shown.
func (p *Progress) Show(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.table = strings.Split(strings.TrimRight(text, "\n"), "\n")
}

// drawTable writes the lines that fit the terminal, the last one first, which is
// the order that mpb wants above a bar.
func (p *Progress) drawTable(w io.Writer, s decor.Statistics) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := p.table
	if f, ok := p.out.(*os.File); ok {
		if _, height, err := term.GetSize(int(f.Fd())); err == nil {
			lines = lines[:min(len(lines), max(height-2, 0))] // the bar, and the line below it
		}
	}
	for _, line := range slices.Backward(lines) {
		if _, err := fmt.Fprintln(w, pretty.Trim(line, s.AvailableWidth)); err != nil {
			return err
		}
	}
	return nil
}

// Message prints the message as a line that stays, above the bar where there is one.
func (p *Progress) Message(message string) {
	p.mu.Lock()
	out := p.out
	if p.container != nil && !p.ended {
		out = p.container
	}
	p.mu.Unlock()
	fmt.Fprintln(out, text.SafeLine(message))
}

// Done takes the bar away; later calls do nothing, and later messages are
// plain lines.
func (p *Progress) Done() {
	p.mu.Lock()
	ended := p.ended
	p.ended = true
	p.mu.Unlock()
	if ended || p.container == nil {
		return
	}
	p.begin.Do(func() {}) // none is made from now on
	if p.bar != nil {
		p.bar.Abort(true)
	}
	p.container.Wait()
}
