package cli

import (
	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/tune/bench"
)

// verbs are what can be done in a venue. To add one, add its line.
func verbs() []run.AnyVerb {
	return []run.AnyVerb{
		run.SurveyVerb(), run.MeasureVerb(), run.CheckVerb(), run.SelfTestVerb(), run.DiagnoseVerb(), run.MeshVerb(), run.WatchVerb(), bench.Verb(),
	}
}

// newInsideCmd is this program in a guest or in the lab's namespaces, where it takes tasks
// over from the process that the user started.
func newInsideCmd() *cobra.Command {
	return &cobra.Command{
		Use:    run.InsideCommand,
		Short:  "Carry out the tasks that standard input hands over, as JSON",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return run.Serve(c.Context(), c.InOrStdin(), c.OutOrStdout(), verbs())
		},
	}
}
