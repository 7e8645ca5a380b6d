// Package cmdutil has what several commands share: the command line, tables and JSON. It
// knows no command, and the program for pods uses it. Next: print.go.
package cmdutil

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

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

// CompleteWith completes the flag by these values.
func CompleteWith(c *cobra.Command, flag string, values []string) {
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}
