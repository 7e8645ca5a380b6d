package cli

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/atomicfile"
	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/mesh/rundir"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/text/console"
)

func newReportCmd() *cobra.Command {
	var format, output string
	var studies []string
	var repeats string
	var wide, anonymous bool
	c := &cobra.Command{
		Use:   "report DIR...",
		Short: "Show a run: text, Markdown, CSV, JSON, HTML, benchstat or OpenMetrics",
		Long:  "Shows a run again, in the format that you choose. Needs no root and no lab. Of an unfinished run it\nshows the rounds that there are. Of a folder with several runs, such as a study that needs two\nkernels, it shows one after the other and compares nothing between them. Of several runs of one\nkind, given by name or in the folder of run --repeat, it shows the first, with the ratios of all\nand, from three on, where those of a further run would lie.",
		Example: `  cnibench report cnibench-run-20260102-030405
  cnibench report cnibench-run-20260102-030405 --format json | jq .findings
  cnibench report monday tuesday wednesday
  cnibench report cnibench-run-20260102-030405 --format html -o page.html
  cnibench report cnibench-run-20260102-030405 --published=kube-ovn-1.8
  cnibench report cnibench-run-20260102-030405 --format openmetrics | gzip >run.om.gz`,
		Args: runDirs(1, 0),
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains(report.Formats(), format) {
				return text.Unknown("format", format, report.Formats())
			}
			dirs := runsOf(args)
			if len(dirs) > 1 && format == string(report.OpenMetrics) {
				return exit.Usage("%s: several runs; show one of them: %s", strings.Join(args, ", "), strings.Join(dirs, ", "))
			}
			var shown []report.Run
			var none []error
			var records []*result.Record
			opt := report.Options{Wide: wide}
			for _, dir := range dirs {
				rec, err := result.Load(dir)
				if err != nil {
					return err
				}
				if m, is, err := rundir.Read(rec); is && len(dirs) == 1 {
					return reportMesh(c.OutOrStdout(), m, err, format, output)
				}
				if anonymous {
					rec.Run.Environment = rec.Run.Environment.Anonymous()
				}
				r := report.Assemble(dir, rec, analysis.Options{})
				if repeats != "" {
					if err := report.ShowStudy(r, repeats); err != nil {
						return err
					}
				}
				if err := addPublished(r, studies); err != nil {
					return err
				}
				if format == string(report.OpenMetrics) {
					wholeRun(&opt, dir, rec, console.Logger(c.ErrOrStderr()))
				}
				shown = append(shown, report.Run{Dir: dir, Report: r})
				none, records = append(none, report.NoneValid(rec)), append(records, rec)
			}
			shown, err := together(args, shown, records)
			if err != nil {
				return err
			}
			if output == "" {
				out := c.OutOrStdout()
				opt.Color, opt.Width = console.UseColor(out), console.Width(out)
				err = report.WriteRuns(out, format, shown, opt)
			} else {
				err = atomicfile.ReplaceFile(output, func(w io.Writer) error { return report.WriteRuns(w, format, shown, opt) })
			}
			if err == nil && !slices.Contains(none, nil) {
				err = exit.With(exit.Gate, none[0])
			}
			return err
		},
	}
	c.Flags().StringVar(&format, "format", string(report.Text), "one of "+cmdutil.JoinOr(report.Formats()))
	c.Flags().StringVarP(&output, "output", "o", "", "write to `FILE` instead of standard output")
	c.Flags().BoolVar(&wide, "wide", false, "text: tables of every step below the first ones")
	c.Flags().BoolVar(&anonymous, "anonymous", false, "leave out the names of a cluster's nodes, e.g. to publish the page")
	c.Flags().StringVar(&repeats, "study", "", "show the pictures of this published `study` (default: those of the one that the run repeats); see cnibench list studies")
	addPublishedFlag(c, &studies)
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(report.Formats(), cobra.ShellCompDirectiveNoFileComp))
	return c
}
