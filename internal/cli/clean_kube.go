package cli

import (
	"fmt"

	"github.com/spf13/cobra"
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
	removed, err := cluster.Clean(c.Context())
	for _, what := range removed {
		fmt.Fprintf(c.OutOrStdout(), "removed %s\n", what)
	}
	if err == nil && len(removed) == 0 {
		fmt.Fprintln(c.OutOrStdout(), "nothing to clean")
	}
	return err
}
