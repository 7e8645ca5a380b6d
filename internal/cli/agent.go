package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/sysmon"
)

// newAgentCmd is the side of cnibench inside an endpoint; other commands start
// it and speak with it on its standard input and output.
func newAgentCmd() *cobra.Command {
	var scope string
	var pairs []string
	cmd := &cobra.Command{
		Use:    "agent [--scope node|pod] [--label k=v]",
		Short:  "Record, echo and probe at an endpoint, asked in JSON lines on stdin",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			labels := make(map[string]string, len(pairs))
			for _, pair := range pairs {
				name, value, ok := strings.Cut(pair, "=")
				if !ok {
					return fmt.Errorf("--label %q: want NAME=VALUE", pair)
				}
				labels[name] = value
			}
			return agent.Serve(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), sysmon.Scope(scope), labels)
		},
	}
	cmd.Flags().StringVar(&scope, "scope", string(sysmon.ScopeNode), "what to record: node, or pod for its network namespace only")
	cmd.Flags().StringArrayVar(&pairs, "label", nil, "label of the recordings, as NAME=VALUE")
	return cmd
}
