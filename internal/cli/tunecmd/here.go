package tunecmd

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/exit"
	"github.com/cnibench/cnibench/internal/tune"
)

// newTuneHereCmd is started inside of an endpoint's namespaces by tune bench:
// a request on standard input, an answer on standard output.
func newTuneHereCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "here",
		Short:  "Set what this network namespace has of its own (started by tune bench)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			req, err := tune.ReadRequest(c.InOrStdin())
			if err != nil {
				return exit.Usage("%v", err)
			}
			m, err := tune.Here(req.WholeMachine)
			if err != nil {
				return err
			}
			a, err := tune.SetNamespace(c.Context(), m, req)
			if err != nil {
				return err
			}
			return json.NewEncoder(c.OutOrStdout()).Encode(a)
		},
	}
}
