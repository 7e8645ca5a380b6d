// Package cli is the command line: one file per command. It wires the other
// packages together and turns kinds of error into exit codes; it measures and
// computes nothing. Next: root.go, then run.go.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/nearest"
	"github.com/cnibench/cnibench/internal/printable"
)

// The exit codes of every command.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnsupported = 3 // not supported here
	exitGate        = 4 // measured, but a gate failed or no sample was valid
)

// exitError ends the program with that code; a nil error is silent.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usage is an error of wrong usage.
func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// Main runs the command line and returns the exit code.
func Main(args []string) int {
	root := newRootCmd()
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	if err == nil {
		return exitDone
	}
	code, text := exitCode(err), err.Error()
	if text != "" {
		fmt.Fprintln(os.Stderr, "cnibench: "+printable.Text(text))
	}
	return code
}

// exitCode is the code for the kind of error.
func exitCode(err error) int {
	var exit *exitError
	var unknown *nearest.Error
	switch {
	case errors.As(err, &exit):
		return exit.code
	case arena.AsUnsupported(err) != nil:
		return exitUnsupported
	case errors.As(err, &unknown):
		return exitUsage
	}
	return exitFailed
}

func newRootCmd() *cobra.Command {
	root := &cobra.Command{
		Use:   "cnibench",
		Short: "Measure, check and choose Kubernetes pod networks",
		Long: strings.TrimSpace(`
cnibench measures what a pod network costs, proves what it does, and helps
people choose and tune one.

  cnibench run                 compare the pod networks that this machine can run
  cnibench report DIR          show a run again, as text, JSON, HTML, …
  cnibench list contenders     what there is to compare
  cnibench probe               what this kernel can run, and what would help

Results go to standard output, progress and messages to standard error.
Exit codes: 0 done; 1 failed; 2 wrong usage; 3 not supported here; 4 measured,
but a gate failed or no sample was valid.`),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	if isPlugin() {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl cnibench"}
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage("%v; see `%s --help`", err, c.CommandPath())
	})
	root.AddCommand(
		newRunCmd(), newReportCmd(), newCompareCmd(), newRecommendCmd(), newListCmd(), newProbeCmd(),
		newLoadCmd(), newServeCmd(), newRecordCmd(), newEnterCmd(), newCleanCmd(), newVersionCmd(), newImportCmd(),
		newAgentCmd(), newFingerprintCmd(),
		newExploreCmd(),
		newTransferCmd(), newVMCmd(), newCheckCmd(), newTuneCmd(),
		newRBACCmd(),
	)
	for _, c := range root.Commands() {
		wrapArgs(c)
	}
	root.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		var names []string
		for _, sub := range c.Commands() {
			if !sub.Hidden {
				names = append(names, sub.Name())
			}
		}
		return nearest.Unknown("command", args[0], names)
	}
	root.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	return root
}

// isPlugin says that kubectl runs the program as its plugin, under the name that
// it looks for: `kubectl cnibench`.
func isPlugin() bool {
	return strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") == "kubectl-cnibench"
}

// wrapArgs makes wrong arguments wrong usage, with the way to the help.
func wrapArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return usage("%v; see `%s --help`", err, c.CommandPath())
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		wrapArgs(sub)
	}
}

// logger writes messages for people to w, a line each.
func logger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// isTerminal says that w is one, so that colours and progress bars fit.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// terminalWidth is the number of columns of w, or 100 where it has none.
func terminalWidth(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 100
}

// useColor follows https://no-color.org.
func useColor(w io.Writer) bool { return isTerminal(w) && os.Getenv("NO_COLOR") == "" }
