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
cnibench measures what a pod network costs, checks what it does, and helps to choose and
tune one.

  cnibench probe               print what this machine can run, and what would help
  cnibench run                 compare the pod networks that this machine can run
  cnibench report DIR          show a run again
  cnibench run --arena kube    compare a cluster's pod network with its nodes' own

Results go to standard output, progress and messages to standard error.
Exit codes: 0 done; 1 failed; 2 wrong usage; 3 not supported here; 4 measured,
but a gate failed or no sample was valid.`),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	if cmdutil.IsPlugin() {
		root.Long = `  kubectl cnibench doctor                is the pod network sound? a minute, at most 200 Mbit/s
  kubectl cnibench run --max-rate 500M   what does it cost? pods beside the nodes' own network, 5 minutes
  kubectl cnibench check all             do large packets cross whole, do policies and encryption hold?

No image to build, nothing to install, and all goes at the end; --plan after run says what it
would send and make.`
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl cnibench"}
	}
	root.SetFlagErrorFunc(flagMistake)
	root.AddCommand(
		newRunCmd(), newReportCmd(), newCompareCmd(), newRecommendCmd(), newListCmd(), newProbeCmd(),
		loadcmd.Load(), loadcmd.Serve(), newRecordCmd(), newEnterCmd(), newCleanCmd(), newVersionCmd(), newImportCmd(),
		inside.Agent(tool().Version), inside.Fingerprint(),
		newInsideCmd(), newExploreCmd(),
		transfercmd.Transfer(), newVMCmd(), newCheckCmd(), tunecmd.New(&clusterNodes{}, newTuneBenchCmd()), newSelfTestCmd(), newDiagnoseCmd(), newDoctorCmd(), newMeshCmd(), newVerifyCmd(),
		newRBACCmd(), newGuardCmd(),
	)
	for _, c := range root.Commands() {
		wrapArgs(c)
	}
	groupCommands(root)
	root.AddCommand(clusterHelp())
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
	root.RunE = func(c *cobra.Command, _ []string) error {
		if cmdutil.IsPlugin() {
			c.Println(root.Long + "\n\nkubectl cnibench --help lists all commands.")
			return nil
		}
		return c.Help()
	}
	return root
}
