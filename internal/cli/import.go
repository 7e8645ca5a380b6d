package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/importer"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/unit"
)

// maxFaults is how many faults the import prints; the run directory has all.
const maxFaults = 20

func newImportCmd() *cobra.Command {
	var out, lineRate string
	var opt importer.Options
	var help strings.Builder
	for _, name := range importer.Formats() {
		fmt.Fprintf(&help, "  %-14s%s\n", name, importer.Help(name))
	}
	c := &cobra.Command{
		Use:   "import FORMAT DIR -o RUN",
		Short: "Read what another benchmark published into a run directory",
		Long: "Reads results of other benchmarks into a run directory, so that report, compare and\n" +
			"recommend take them like runs of one's own. Nothing is guessed: a fault of the source is\n" +
			"a finding with file and line. Links are not followed, nothing outside DIR is read.\n\nFormats:\n" + help.String(),
		Example: `  cnibench import infrabuilder benchmark-k8s-cni-2024-01/results -o published-2024
  cnibench report published-2024`,
		Args:      cobra.ExactArgs(2),
		ValidArgs: importer.Formats(),
		RunE: func(c *cobra.Command, args []string) error {
			if out == "" {
				return exit.Usage("-o is missing: name the run directory to make; see `%s --help`", c.CommandPath())
			}
			if lineRate != "" {
				rate, err := unit.ParseBitRate(lineRate)
				if err != nil {
					return exit.Usage("--line-rate: %v", err)
				}
				if rate < 1e6 {
					return exit.Usage("--line-rate %s: below 1 Mbit/s; give the unit, such as 40G", lineRate)
				}
				opt.LineRate = rate
			}
			if c.Flags().Changed("mtu") && (opt.MTU < 576 || opt.MTU > 65535) {
				return exit.Usage("--mtu %d: an MTU is 576 to 65535 bytes", opt.MTU)
			}
			cat, err := run.LoadCatalogue()
			if err != nil {
				return err
			}
			opt.Describe, opt.Tool = describeProduct(cat), tool()
			sum, err := importer.Import(c.Context(), args[0], args[1], out, opt)
			if errors.Is(err, result.ErrExists) {
				return exit.Usage("-o %s: it exists already; name another, as an import makes a new run directory", out)
			}
			if err != nil {
				return err
			}
			printImport(c.ErrOrStderr(), sum)
			fmt.Fprintf(c.OutOrStdout(), "%s\n", out)
			if sum.Samples == sum.Invalid {
				return exit.With(exit.Gate, errors.New("no sample is valid; `cnibench report "+out+"` says why"))
			}
			return nil
		},
	}
	f := c.Flags()
	f.StringVarP(&out, "output", "o", "", "run directory `DIR` to make")
	f.StringVar(&lineRate, "line-rate", "", "rate of the measured link, e.g. 40G (default: infrabuilder 40G, else unknown)")
	f.IntVar(&opt.MTU, "mtu", 0, "MTU of the underlay in `BYTES` (default: what the files say)")
	f.StringVar(&opt.Baseline, "baseline", "", "`CONTENDER` that the others are compared with (default host)")
	c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return importer.Formats(), cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return c
}

// describeProduct is what the catalogue knows of a contender that ran as the
// product itself, not as the lab reproduces it.
func describeProduct(cat *run.Catalogue) func(id string) (result.ContenderInfo, bool) {
	return func(id string) (result.ContenderInfo, bool) {
		found, err := cat.Contender(id)
		if err != nil {
			return result.ContenderInfo{}, false
		}
		d := found.Datapath
		return result.ContenderInfo{
			ID: found.ID, Product: found.Product, Version: found.Version, Summary: found.Summary,
			Datapath: d.Attach + " × " + d.Transport, Overhead: d.Overhead,
		}, true
	}
}

// printImport says what was read and what was wrong with it.
func printImport(w io.Writer, s *importer.Summary) {
	fmt.Fprintf(w, "%d files, %.1f MB: %d samples, %d of them invalid; %d faults\n",
		s.Files, float64(s.Bytes)/1e6, s.Samples, s.Invalid, len(s.Faults))
	for i, f := range s.Faults {
		if i == maxFaults {
			fmt.Fprintf(w, "  … and %d more; faults.jsonl in the run directory has all\n", len(s.Faults)-i)
			break
		}
		where := f.File
		if f.Line > 0 {
			where += fmt.Sprintf(":%d", f.Line)
		}
		fmt.Fprintf(w, "  %s: %s\n", where, f.Text)
	}
}
