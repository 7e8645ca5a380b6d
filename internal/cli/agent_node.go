package cli

import (
	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/run"
)

// newAgentNodeCmd is the installer's side on a node of a cluster.
func newAgentNodeCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "node",
		Short:  "Read or clean what pod networks leave on this node, as standard input asks",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run.OnNode(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}
