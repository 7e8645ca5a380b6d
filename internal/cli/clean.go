package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/arena/lab"
)

func newCleanCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "clean",
		Short: "Take back everything that a crashed run can have left",
		Long: `Takes back what a crashed run can have left. A lab leaves nothing: the kernel
takes its namespaces back when the run ends, by whatever death. This ends labs
whose launcher is gone and that hang all the same, and takes host settings back
that tune apply has made. Run directories are kept.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			labs, err := lab.FindRunning()
			if err != nil {
				return err
			}
			var errs []error
			ended := 0
			for _, l := range labs {
				if !l.Orphaned() {
					fmt.Fprintf(c.ErrOrStderr(), "a lab is running (launcher %d): left alone\n", l.Launcher)
					continue
				}
				if err := l.Kill(); err != nil {
					errs = append(errs, fmt.Errorf("lab %d: %w", l.Init, err))
					continue
				}
				ended++
			}
			tuned, err := cleanTuning(c)
			errs = append(errs, err)
			if ended == 0 && !tuned && errors.Join(errs...) == nil {
				fmt.Fprintln(c.OutOrStdout(), "nothing to clean")
			} else if ended > 0 {
				fmt.Fprintf(c.OutOrStdout(), "ended %d labs\n", ended)
			}
			return errors.Join(errs...)
		},
	}
}
