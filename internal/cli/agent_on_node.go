package cli

import (
	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/run"
)

// newAgentOnNodeCmd is this program among a node's own files and programs; a
// privileged pod starts it.
func newAgentOnNodeCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "on-node -- ARGUMENT…",
		Short:  "Run this program with those arguments in the mount namespace of the pod's node",
		Hidden: true,
		Args:   cobra.MinimumNArgs(1),
		RunE:   func(_ *cobra.Command, args []string) error { return run.ExecOnNode(args...) },
	}
}
