package cli

import (
	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/published"
)

// allStudies is what --published without a value asks for.
const allStudies = "all"

// addPublishedFlag gives the command --published.
func addPublishedFlag(c *cobra.Command, studies *[]string) {
	c.Flags().StringSliceVar(studies, "published", nil, "show published figures beside the results (not in csv, benchstat and openmetrics): --published for all studies, --published=ducastel-2024,ducastel-2019 for some `STUDIES`")
	c.Flags().Lookup("published").NoOptDefVal = allStudies
	_ = c.RegisterFlagCompletionFunc("published", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		names := []string{allStudies}
		all, err := published.Studies()
		for _, s := range all {
			names = append(names, s.ID+"\t"+s.Author+", "+s.Date)
		}
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

// addPublished sets the studies beside the results of r; no names add none.
// Its error is a *text.UnknownError for an unknown study.
func addPublished(r *analysis.Report, names []string) error {
	if len(names) == 0 {
		return nil
	}
	all, err := published.Studies()
	if err != nil {
		return err
	}
	if len(names) == 1 && names[0] == allStudies {
		names = nil
	}
	studies, err := published.Select(all, names)
	if err != nil {
		return err
	}
	published.Attach(r, studies)
	return nil
}
