package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/cli/tunecmd"
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
	tried := false
	if err == nil && f.kube.Privileged && len(did.Spared) == 0 {
		tried, err = cleanTrials(c, cluster)
	}
	if err == nil && len(did.Removed)+len(did.Spared) == 0 && !tried {
		fmt.Fprintln(c.OutOrStdout(), "nothing to clean")
	}
	return err
}

// cleanTrials takes back on the nodes what a `diagnose --prove` left that was killed together
// with what holds its trial, and says whether there was anything.
func cleanTrials(c *cobra.Command, cluster run.Cluster) (found bool, err error) {
	request := &run.Request{Given: cmdutil.GivenFlags(c), Cluster: cluster}
	const next = "try `cnibench clean --arena kube --privileged` again"
	err = run.OnNodes(c.Context(), request, tunecmd.RevertTrials(), next, func(answers []run.NodeAnswer) error {
		found = slices.ContainsFunc(answers, func(a run.NodeAnswer) bool { return a.Stdout != "" })
		return showNodes(c, answers, next, nil)
	})
	return found, err
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
