package cli

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/contenders"
	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/analysis/recommend"
	"github.com/cnibench/cnibench/internal/atomicfile"
	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/text/console"
)

// recommendFlags is the command line of `cnibench recommend`.
type recommendFlags struct {
	needs, weights           []string
	scenario, format, output string
}

func newRecommendCmd() *cobra.Command {
	var f recommendFlags
	c := &cobra.Command{
		Use:   "recommend DIR...",
		Short: "Choose a pod network from a run, for given needs",
		Long:  recommendHelp(),
		Example: `  cnibench recommend cnibench-run-20260102-030405 --need policy,arm64
  cnibench recommend cnibench-run-20260102-030405 --need encryption --weight latency=2,cpu=0.5
  cnibench recommend cnibench-run-20260102-030405 --scenario tail-latency
  cnibench recommend monday tuesday wednesday
  cnibench recommend cnibench-run-20260102-030405 --format json | jq '.ranked[0]'`,
		Args: runDirs(1, 0),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	fl := c.Flags()
	fl.StringSliceVar(&f.needs, "need", nil, "`needs` that rule a contender out, listed above")
	fl.StringSliceVar(&f.weights, "weight", nil, "`CRITERION=NUMBER`,… in place of the weights above; 0 leaves a criterion out")
	fl.StringVar(&f.scenario, "scenario", "", "the needs and weights of a usual case, by its `NAME` in cnibench list scenarios; --need and --weight change them")
	fl.StringVar(&f.format, "format", string(report.Text), "one of "+cmdutil.JoinOr(report.RecommendFormats()))
	fl.StringVarP(&f.output, "output", "o", "", "write to `FILE` instead of standard output")
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(report.RecommendFormats(), cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("need", completeList(askable(), ""))
	_ = c.RegisterFlagCompletionFunc("weight", completeList(recommend.CriterionNames(), "="))
	return c
}

// askable are the needs that a user can ask for; the others are always asked for.
func askable() []string {
	return slices.DeleteFunc(recommend.NeedNames(), func(n string) bool { return slices.Contains(analysis.AlwaysNeeded(), n) })
}

// completeList completes the last name of a list with commas.
func completeList(names []string, suffix string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndex(typed, ",")+1]
		var list []string
		for _, name := range names {
			list = append(list, before+name+suffix)
		}
		return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

func recommendHelp() string {
	var b strings.Builder
	b.WriteString(`Needs rule contenders out: by what a check of the run found, else by the
catalogue. Those that are left are ordered by the weighted geometric mean of
their measured ratios to the baseline; the first is tested against every other by
the scores of the rounds. Contenders that meet the needs but were not measured are
named as not known.

Needs:
`)
	for _, n := range recommend.Needs() {
		fmt.Fprintf(&b, "  %-16s %s\n", n.Name, n.Help)
	}
	b.WriteString("\nCriteria and their weights:\n")
	for _, c := range recommend.Criteria() {
		fmt.Fprintf(&b, "  %-16s %-4g %s\n", c.Name, c.Weight, c.Help)
	}
	b.WriteString(`
How firm: firm, the first is better than every other with p at most 5 %; leaning,
with p at most 20 %; a toss-up, less sure than that; untested, fewer than six
rounds. Those that differ by less than 2 % are as good as each other.`)
	return b.String()
}

func (f *recommendFlags) wish() (recommend.Wish, error) {
	wish := recommend.Wish{Needs: f.needs}
	if !slices.Contains(report.RecommendFormats(), f.format) {
		return wish, text.Unknown("format", f.format, report.RecommendFormats())
	}
	for _, need := range f.needs {
		if !slices.Contains(recommend.NeedNames(), need) {
			return wish, text.Unknown("need", need, askable())
		}
	}
	for _, w := range f.weights {
		name, number, _ := strings.Cut(w, "=")
		if !slices.Contains(recommend.CriterionNames(), name) {
			return wish, text.Unknown("criterion", name, recommend.CriterionNames())
		}
		v, err := strconv.ParseFloat(number, 64)
		if err != nil || math.IsNaN(v) || v < 0 || v > 1000 {
			return wish, exit.Usage("--weight %s: want %s=NUMBER from 0 to 1000", w, name)
		}
		wish.Weights = append(wish.Weights, analysis.Weight{Criterion: name, Weight: v})
	}
	list, err := contender.Load(contenders.FS)
	wish.Catalogue = report.Capabilities(list)
	return wish, err
}

func (f *recommendFlags) run(c *cobra.Command, args []string) error {
	wish, err := f.wish()
	if err != nil {
		return err
	}
	var scenario *recommend.Scenario
	if f.scenario != "" {
		all, err := recommend.Scenarios()
		if err != nil {
			return err
		}
		if scenario, err = text.Find("scenario", f.scenario, all, func(s *recommend.Scenario) string { return s.Name }); err != nil {
			return err
		}
		wish = scenario.Wish(wish)
	}
	var list []*analysis.Recommendation
	var titles []string
	var failed []error
	dirs := runsOf(args)
	var records []*result.Record
	for _, dir := range dirs {
		r, rec, title, err := f.choose(dir, wish, scenario)
		switch {
		case err != nil && exit.Code(err) != exit.Gate:
			return err
		case err != nil:
			failed = append(failed, err)
			continue
		}
		if s := report.IgnoredText(r); s != "" {
			fmt.Fprintln(c.ErrOrStderr(), "cnibench: "+s)
		}
		list, titles, records = append(list, r), append(titles, title), append(records, rec)
	}
	if list == nil {
		return errors.Join(failed...)
	}
	for _, err := range failed {
		fmt.Fprintf(c.ErrOrStderr(), "cnibench: %v\n", err)
	}
	if list, err = chooseTogether(args, list, records); err != nil {
		return err
	}
	write := func(w io.Writer, opt report.Options) (err error) {
		for i, r := range list {
			if len(list) > 1 && f.format != string(report.JSON) {
				fmt.Fprintf(w, "%s\n\n", titles[i])
			}
			err = errors.Join(err, report.WriteRecommendation(w, f.format, r, opt))
		}
		return err
	}
	if f.output == "" {
		out := c.OutOrStdout()
		return write(out, report.Options{Color: console.UseColor(out), Width: console.Width(out)})
	}
	return atomicfile.ReplaceFile(f.output, func(w io.Writer) error { return write(w, report.Options{}) })
}

// choose recommends from the run in dir, and returns the run's title. Its error has exit.Gate if the run has no figures
// for that.
func (f *recommendFlags) choose(dir string, wish recommend.Wish, scenario *recommend.Scenario) (r *analysis.Recommendation, rec *result.Record, title string, err error) {
	if rec, err = result.Load(dir); err != nil {
		return nil, nil, "", err
	}
	r = recommend.Choose(rec, wish)
	if scenario != nil {
		if advice := scenario.Advice(r); !advice.Measured() {
			return nil, nil, "", exit.With(exit.Gate, fmt.Errorf("%s: no figures of %s to judge %s by; measure them: cnibench run %s", dir, analysis.AndList(advice.Chief), f.scenario, advice.Run))
		}
	}
	if r == nil {
		return nil, nil, "", exit.With(exit.Gate, fmt.Errorf("%s: nothing to score by: no contender has a valid figure of the weighted criteria beside the baseline %s; `cnibench report %s` says why", dir, rec.Run.Baseline, dir))
	}
	if noCriterionMeasured(wish.Weights, r) {
		return nil, nil, "", exit.With(exit.Gate, fmt.Errorf("%s: %s; leave --weight out, or measure with suites that have: %s", dir, report.IgnoredText(r), suitesOf(r.Ignored)))
	}
	return r, rec, report.Title(dir, rec.Run.Arena, rec.Run.Environment), nil
}

// suitesOf names what measures the criteria.
func suitesOf(names []string) string {
	var list []string
	for _, c := range recommend.Criteria() {
		if slices.Contains(names, c.Name) {
			list = append(list, c.Name+" ("+c.Suite+")")
		}
	}
	return strings.Join(list, ", ")
}

// noCriterionMeasured says that no criterion that was given weight has figures in any list.
func noCriterionMeasured(weights []analysis.Weight, r *analysis.Recommendation) bool {
	a := analysis.Advice{Recommendation: r}
	for _, w := range weights {
		if w.Weight > 0 {
			a.Chief = append(a.Chief, w.Criterion)
		}
	}
	return len(a.Chief) > 0 && !a.Measured()
}
