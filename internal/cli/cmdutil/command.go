// Package cmdutil has what several commands share: flags of a cluster, tables
// and JSON, the context that ends with an interrupt. It knows no command.
// Next: kube_flags.go.
package cmdutil

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// UntilInterrupted is a context of the command that ends with the first SIGINT or
// SIGTERM. The second one ends the program at once.
func UntilInterrupted(c *cobra.Command) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// GivenFlags are the names of the command line's flags.
func GivenFlags(c *cobra.Command) map[string]bool {
	given := map[string]bool{}
	c.Flags().Visit(func(flag *pflag.Flag) { given[flag.Name] = true })
	return given
}

// IsPlugin says that kubectl runs the program as its plugin, under the name that
// it looks for: `kubectl cnibench`.
func IsPlugin() bool {
	return strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") == "kubectl-cnibench"
}
