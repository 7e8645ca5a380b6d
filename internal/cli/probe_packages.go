package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/host/programs"
)

// packagesFlags are the flags of `cnibench probe --packages`.
type packagesFlags struct {
	only       bool
	suite      string
	contenders []string
}

func (f *packagesFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.only, "packages", false, "print the programs that are missing here, and the command that installs them")
	c.Flags().StringVar(&f.suite, "suite", "", "with --packages: only what the suite of this `NAME` needs")
	c.Flags().StringSliceVar(&f.contenders, "contenders", nil, "with --packages: only what the contenders `a,b` need")
}

// packagesResult is the JSON form.
type packagesResult struct {
	Schema       string        `json:"schema"`
	Distribution string        `json:"distribution"`
	Install      string        `json:"install"` // "" where nothing is missing that a package has
	Programs     programs.List `json:"programs"`
}

func (f *packagesFlags) run(c *cobra.Command, asJSON bool) error {
	list, err := programs.Run(f.suite, f.contenders)
	if err != nil {
		return err
	}
	out := c.OutOrStdout()
	if asJSON {
		return cmdutil.PrintJSON(out, packagesResult{"cnibench/packages/1", host.ThisDistribution().Name, list.Install(), list})
	}
	missing := list.FindMissing()
	if len(missing) == 0 {
		fmt.Fprintln(out, "Every program is here.")
		return nil
	}
	var rows [][]string
	for _, w := range missing {
		rows = append(rows, []string{w.Program, w.Remedy, strings.Join(w.For, ", ")})
	}
	cmdutil.PrintTable(out, []string{"Missing program", "What would help", "For"}, rows)
	if install := list.Install(); install != "" {
		fmt.Fprintf(out, "\nTo install all of them, as root: %s\n", install)
	}
	return nil
}
