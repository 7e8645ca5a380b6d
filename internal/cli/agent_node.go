package cli

import (
	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/arena/kube/install/node"
)

// newAgentNodeCmd is the installer's side on a node of a cluster.
func newAgentNodeCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "node REQUEST…",
		Short:  "Read or clean what pod networks leave on this node, asked by its arguments",
		Hidden: true,
		Args:   cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return node.Run(cmd.Context(), args, cmd.OutOrStdout())
		},
	}
}
