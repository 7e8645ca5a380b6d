package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/arena/kube"
)

// cleanKube removes what carries cnibench's label from the cluster.
func cleanKube(c *cobra.Command, f *cleanFlags) error {
	removed, err := kube.Clean(c.Context(), f.kube.options(nil))
	for _, object := range removed {
		fmt.Fprintf(c.OutOrStdout(), "removed %s\n", object)
	}
	if err == nil && len(removed) == 0 {
		fmt.Fprintln(c.OutOrStdout(), "nothing to clean")
	}
	return kubeError(err)
}
