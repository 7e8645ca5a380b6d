package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/result/verify"
)

func newVerifyCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "verify DIR",
		Short: "Check a run's samples against its raw files",
		Long: strings.TrimSpace(`
Checks that a run directory is what it was when the run ended, by the digests in
run.json, and that its samples are what its raw files say: percentiles are
computed again from the histograms, and the goodput of iperf3 is added up again
from its JSON. Ends with exit code 4 if anything does not agree.`),
		Example: "  cnibench verify cnibench-run-20260102-030405",
		Args:    runDirs(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			r, err := verify.Run(args[0])
			if err != nil {
				return err
			}
			out := c.OutOrStdout()
			for _, problem := range r.Problems {
				fmt.Fprintln(out, problem)
			}
			if r.Imported {
				fmt.Fprintln(out, "an imported run: its sources are not copied, so that goodput can't be added up again; sources.jsonl has their digests")
			}
			if !r.Ended {
				fmt.Fprintln(out, "run.json has no digests: the run has not ended, or an earlier version made it")
			}
			fmt.Fprintf(out, "%d samples; %d percentiles and %d goodputs agree with the raw files or are named above", r.Samples, r.Percentiles, r.Goodputs)
			if r.Unchecked > 0 {
				fmt.Fprintf(out, "; %d goodputs of several processes can't be checked", r.Unchecked)
			}
			fmt.Fprintln(out)
			if len(r.Problems) > 0 {
				return exit.With(exit.Gate, errors.New("figures of the run differ from its raw files, as listed above; do not use the run"))
			}
			return nil
		},
	}
}
