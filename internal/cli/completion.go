package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/run"
)

// completeRunFlags completes names from the catalogue.
func completeRunFlags(c *cobra.Command) {
	names := func(pick func(*run.Catalogue) []string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			cat, err := run.LoadCatalogue()
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			return pick(cat), cobra.ShellCompDirectiveNoFileComp
		}
	}
	contenders := func(cat *run.Catalogue) []string {
		var ids []string
		for _, x := range cat.Contenders {
			ids = append(ids, x.ID)
		}
		return ids
	}
	for flag, complete := range map[string]func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective){
		"suite": names(func(cat *run.Catalogue) []string {
			var ids []string
			for _, s := range cat.Suites {
				ids = append(ids, s.ID)
			}
			return ids
		}),
		"contenders": names(func(cat *run.Catalogue) []string {
			return slices.Concat([]string{"supported", "all", run.ThisCluster}, contenders(cat))
		}),
		"baseline":      names(contenders),
		"rates":         cobra.FixedCompletions([]string{"auto", "given"}, cobra.ShellCompDirectiveNoFileComp),
		"underlay":      cobra.FixedCompletions([]string{"auto", "switch", "vpc"}, cobra.ShellCompDirectiveNoFileComp),
		"cni-transport": cobra.FixedCompletions([]string{"routes", "vxlan", "none"}, cobra.ShellCompDirectiveNoFileComp),
	} {
		_ = c.RegisterFlagCompletionFunc(flag, complete)
	}
}
