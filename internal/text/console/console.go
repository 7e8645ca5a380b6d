// Package console is how commands speak to people: progress, messages, the
// terminal's width and colours. It knows nothing of runs. Next: progress.go.
package console

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/cnibench/cnibench/internal/text"
)

// Logger writes messages for people to w, a line each.
func Logger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// PlainLines returns what writes a text to w as a line.
func PlainLines(w io.Writer) func(text string) {
	return func(line string) { fmt.Fprintln(w, text.SafeLine(line)) }
}

// IsTerminal says that w is one, so that colours and progress bars fit.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Width is the number of columns of w, or 100 where it has none.
func Width(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 100
}

// UseColor follows https://no-color.org.
func UseColor(w io.Writer) bool { return IsTerminal(w) && os.Getenv("NO_COLOR") == "" }

// Lines is a writer that gives each line to the function, so that log lines do
// not break a live progress bar.
type Lines func(string)

func (l Lines) Write(p []byte) (int, error) {
	l(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}
