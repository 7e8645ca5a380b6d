// Package cli is the command line: one file per command. It wires the other
// packages together and turns kinds of error into exit codes; it measures and
// computes nothing. Next: root.go, then run.go.
package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/cli/inside"
	"github.com/cnibench/cnibench/internal/cli/loadcmd"
	"github.com/cnibench/cnibench/internal/cli/transfercmd"
	"github.com/cnibench/cnibench/internal/cli/tunecmd"
	"github.com/cnibench/cnibench/internal/text"
)

// Main runs the command line and returns the exit code.
func Main(args []string) int {
	root := Root()
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	if err == nil {
		return exit.Done
	}
	code, message := exit.Code(err), err.Error()
	if message != "" {
		fmt.Fprintln(os.Stderr, "cnibench: "+text.Safe(message))
	}
	return code
}

// Root returns the command line.
func Root() *cobra.Command {
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
	if cmdutil.IsPlugin() {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl cnibench"}
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return exit.Usage("%v; see `%s --help`", err, c.CommandPath())
	})
	root.AddCommand(
		newRunCmd(), newReportCmd(), newCompareCmd(), newRecommendCmd(), newListCmd(), newProbeCmd(),
		loadcmd.Load(), loadcmd.Serve(), newRecordCmd(), newEnterCmd(), newCleanCmd(), newVersionCmd(), newImportCmd(),
		inside.Agent(tool().Version), inside.Fingerprint(),
		newExploreCmd(),
		transfercmd.Transfer(), newVMCmd(), newCheckCmd(), tunecmd.New(newTuneBenchCmd()), newSelfTestCmd(), newVerifyCmd(),
		newRBACCmd(),
	)
	for _, c := range root.Commands() {
		wrapArgs(c)
	}
	describeFlags(root)
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
		return text.Unknown("command", args[0], names)
	}
	root.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	return root
}

// wrapArgs makes wrong arguments wrong usage, with the way to the help.
func wrapArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return exit.Usage("%v; see `%s --help`", err, c.CommandPath())
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		wrapArgs(sub)
	}
}
