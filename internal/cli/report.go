package cli

import (
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/disk"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/card"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/text/console"
)

func newReportCmd() *cobra.Command {
	var format, output, cardFile, cardURL string
	var studies []string
	var repeats string
	var costs costFlags
	var wide bool
	c := &cobra.Command{
		Use:   "report DIR",
		Short: "Show a run: text, Markdown, CSV, JSON, HTML, benchstat or OpenMetrics",
		Long:  "Shows a run again, in the format that you choose. Needs no root and no lab. For an unfinished\nrun it shows the rounds measured so far.",
		Example: `  cnibench report cnibench-run-20260102-030405
  cnibench report cnibench-run-20260102-030405 --format json | jq .findings
  cnibench report cnibench-run-20260102-030405 --format html -o page.html
  cnibench report cnibench-run-20260102-030405 --card card.png
  cnibench report cnibench-run-20260102-030405 --fleet nodes=1000,gbps=2 --prices prices.yaml --watts-per-core 5
  cnibench report cnibench-run-20260102-030405 --published=kube-ovn-1.8
  cnibench report cnibench-run-20260102-030405 --format openmetrics | gzip >run.om.gz`,
		Args: runDirs(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains(report.Formats(), format) {
				return text.Unknown("format", format, report.Formats())
			}
			options, err := costs.options()
			if err != nil {
				return err
			}
			rec, err := result.Load(args[0])
			if err != nil {
				return err
			}
			r := run.Assemble(args[0], rec, options)
			if repeats != "" {
				if err := run.ShowStudy(r, repeats); err != nil {
					return err
				}
			}
			if err := addPublished(r, studies); err != nil {
				return err
			}
			if cardFile != "" {
				return disk.ReplaceFile(cardFile, func(w io.Writer) error { return card.Write(w, r) })
			}
			opt := report.Options{Wide: wide, Card: cardURL}
			if format == string(report.OpenMetrics) {
				wholeRun(&opt, args[0], rec, console.Logger(c.ErrOrStderr()))
			}
			if output == "" {
				out := c.OutOrStdout()
				opt.Color, opt.Width = console.UseColor(out), console.Width(out)
				if err := report.Write(out, format, r, opt); err != nil {
					return err
				}
				return run.NoneValid(args[0], rec)
			}
			if err := disk.ReplaceFile(output, func(w io.Writer) error { return report.Write(w, format, r, opt) }); err != nil {
				return err
			}
			return run.NoneValid(args[0], rec)
		},
	}
	c.Flags().StringVar(&format, "format", string(report.Text), "one of "+cmdutil.JoinOr(report.Formats()))
	c.Flags().StringVarP(&output, "output", "o", "", "write to `FILE` instead of standard output")
	c.Flags().BoolVar(&wide, "wide", false, "text: tables of every step below the first ones")
	c.Flags().StringVar(&repeats, "study", "", "show the pictures of this published `study` (default: those of the one that the run repeats); see cnibench list studies")
	c.Flags().StringVar(&cardFile, "card", "", "write a picture of 1200 × 630 pixels, a PNG, to `FILE`, for links and slides: verdict, best five, machine")
	c.Flags().StringVar(&cardURL, "card-url", "", "html: `address` at which that picture is published; other sites show it beside a link to the page")
	addPublishedFlag(c, &studies)
	costs.add(c)
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(report.Formats(), cobra.ShellCompDirectiveNoFileComp))
	return c
}
