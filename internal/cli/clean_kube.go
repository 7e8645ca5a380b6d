package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/run"
)

// cleanKube removes from the cluster what runs have left: a contender that one
// had installed, as the journal in the cluster says, and every run's namespaces.
func cleanKube(c *cobra.Command, f *cleanFlags) error {
	cluster := f.kube
	if !c.Flags().Changed("image") {
		cluster.Image = ""
	}
	if !c.Flags().Changed("pull-policy") {
		cluster.PullPolicy = ""
	}
	did, err := cluster.Clean(c.Context(), f.allRuns)
	if did == nil {
		return err
	}
	for _, what := range did.Removed {
		fmt.Fprintf(c.OutOrStdout(), "removed %s\n", what)
	}
	for _, run := range did.Spared {
		fmt.Fprintf(c.ErrOrStderr(), "run %s is under way: left alone, with what it installed; --all-runs removes that, too\n", run)
	}
	if err == nil && len(did.Removed)+len(did.Spared) == 0 {
		fmt.Fprintln(c.OutOrStdout(), "nothing to clean")
	}
	return err
}

// newGuardCmd is the process that cleans up after a run that is killed.
func newGuardCmd() *cobra.Command {
	return &cobra.Command{
		Use:    run.GuardCommand,
		Short:  "Remove from a cluster what the process at standard input leaves there when it ends",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(c *cobra.Command, _ []string) error { return run.Guard(c.Context(), c.InOrStdin()) },
	}
}
