package cli

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/analysis/compare"
	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text"
)

// compareFlags is the command line of `cnibench compare`.
type compareFlags struct {
	metrics, steps, contenders []string
	failOn, confidence         string
	vsBaseline, force, mixed   bool
	format, output             string
}

func newCompareCmd() *cobra.Command {
	var f compareFlags
	c := &cobra.Command{
		Use:   "compare OLD NEW, or OLD... -- NEW...",
		Short: "Compare two runs; with --fail-on, a gate for CI",
		Long: strings.TrimSpace(`
Compares the figures of two runs: for each contender, step and metric the change with its
interval, the worst first.

With --fail-on 5% the command is a gate and ends with exit code 4
  - when a figure is worse by more than 5 %: its whole interval lies beyond the limit,
    corrected for the number of figures compared;
  - when a planned figure has no valid sample in the new run;
  - when the new run is incomplete or can't be read whole;
  - when the rounds are too few for any figure to fail.

Runs whose conditions differ in what matters (arena, settings, step parameters,
contender versions, kernel, CPU, …) are refused with exit code 2; --force
compares them all the same and lists the differences. Runs of different versions of
cnibench are refused, too; --mixed-versions allows those alone.

Each side may have several runs, with -- between the sides. Each run then counts once, and
the intervals include what differs from run to run, which one run's rounds can't show.`),
		Example: `  cnibench compare before after
  cnibench compare before after --fail-on 5% --vs-baseline
  cnibench compare before-1 before-2 before-3 before-4 -- after-1 after-2 after-3 after-4
  cnibench compare before after --fail-on 5% --format junit -o cnibench.xml
  cnibench compare before after --format benchstat | benchstat -col run -`,
		Args: runDirs(2, 0),
		RunE: func(c *cobra.Command, args []string) error {
			dash := c.ArgsLenAtDash()
			switch {
			case dash < 0 && len(args) != 2 || dash == 0 || dash == len(args):
				return exit.Usage("want OLD and NEW, or several of each as OLD... -- NEW...")
			case dash < 0:
				dash = 1
			}
			return f.run(c, args[:dash], args[dash:])
		},
	}
	fl := c.Flags()
	fl.StringSliceVar(&f.metrics, "metric", nil, "`metrics` to compare, or all (default: goodput or rate, median and p99 latency, CPU per Gbit/s)")
	fl.StringSliceVar(&f.steps, "step", nil, "`steps` to compare (default: all)")
	fl.StringSliceVar(&f.contenders, "contenders", nil, "`contenders` to compare (default: all)")
	fl.StringVar(&f.failOn, "fail-on", "", "fail when a figure is worse by more than this `share`, e.g. 5% (default: no gate)")
	fl.StringVar(&f.confidence, "confidence", "95%", "confidence of the intervals, a `share`; at 95% one gate in 20 fails by chance, if runs differ no more than the rounds of one run")
	fl.BoolVar(&f.vsBaseline, "vs-baseline", false, "compare the ratios to each run's own baseline: for machines that are not always equally fast")
	fl.BoolVar(&f.mixed, "mixed-versions", false, "compare runs of different versions of cnibench")
	fl.BoolVar(&f.force, "force", false, "compare runs made under different conditions; the differences are listed")
	fl.StringVar(&f.format, "format", string(report.Text), "one of "+cmdutil.JoinOr(report.CompareFormats()))
	fl.StringVarP(&f.output, "output", "o", "", "write to `FILE` instead of standard output")
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(report.CompareFormats(), cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("metric", cobra.FixedCompletions(append([]string{"all"}, metricNames()...), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func metricNames() []string {
	var names []string
	for _, m := range result.Metrics() {
		names = append(names, m.Name)
	}
	return names
}

// options are the checked flags.
func (f *compareFlags) options() (opt compare.Options, err error) {
	if !slices.Contains(report.CompareFormats(), f.format) {
		return opt, text.Unknown("format", f.format, report.CompareFormats())
	}
	opt = compare.Options{Metrics: f.metrics, Steps: f.steps, Contenders: f.contenders, VsBaseline: f.vsBaseline}
	for _, metric := range f.metrics {
		if _, known := result.LookupMetric(metric); !known && metric != "all" {
			return opt, text.Unknown("metric", metric, append(metricNames(), "all"))
		}
	}
	if opt.Confidence, err = percentage(f.confidence); err != nil || opt.Confidence < 0.5 || opt.Confidence >= 1 {
		return opt, exit.Usage("--confidence %q: want a percentage from 50%% to below 100%%, e.g. 95%%", f.confidence)
	}
	if f.failOn != "" {
		limit, err := percentage(f.failOn)
		if err != nil || limit < 0 || limit >= 1 {
			return opt, exit.Usage("--fail-on %q: want a percentage from 0%% to below 100%%, e.g. 5%%", f.failOn)
		}
		opt.FailOn = &limit
	}
	return opt, nil
}

// percentage is 0.05 of "5%" and of "5 %".
func percentage(s string) (float64, error) {
	number, found := strings.CutSuffix(strings.TrimSpace(s), "%")
	if !found {
		return 0, errors.New("no percent sign")
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, errors.New("no number")
	}
	return v / 100, nil
}
