package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/analysis/compare"
	"github.com/cnibench/cnibench/internal/atomicfile"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/fingerprint"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text/console"
)

// run compares the runs of one folder with those of another, each with the one of its name.
// Several runs a side are repetitions of one run.
func (f *compareFlags) run(c *cobra.Command, oldDirs, newDirs []string) error {
	opt, err := f.options()
	if err != nil {
		return err
	}
	if len(oldDirs)+len(newDirs) > 2 {
		return f.compare(c, oldDirs, newDirs, opt)
	}
	names, lacking := pairNames(oldDirs[0], newDirs[0])
	var errs []error
	for i, name := range names {
		if len(names) > 1 {
			fmt.Fprintf(c.ErrOrStderr(), "run %d of %d: %s\n", i+1, len(names), filepath.Join(newDirs[0], name))
		}
		errs = append(errs, f.compare(c, []string{filepath.Join(oldDirs[0], name)}, []string{filepath.Join(newDirs[0], name)}, opt))
	}
	for _, l := range lacking {
		fmt.Fprintln(c.ErrOrStderr(), "cnibench: "+l.text)
		if l.gone && opt.FailOn != nil {
			errs = append(errs, exit.With(exit.Gate, errors.New("gate failed: "+l.text)))
		}
	}
	return errors.Join(errs...)
}

// lack is a run that only one of two folders has.
type lack struct {
	text string
	gone bool // the new folder lacks it
}

// pairNames returns the names of the runs that both folders have, "" for a folder that is a
// run itself, and what only one of them has.
func pairNames(old, now string) (names []string, lacking []lack) {
	inOld, inNew := runNames(old), runNames(now)
	for _, name := range inOld {
		if slices.Contains(inNew, name) {
			names = append(names, name)
		} else {
			lacking = append(lacking, lack{filepath.Join(now, name) + " is missing: the other folder has that run", true})
		}
	}
	for _, name := range inNew {
		if !slices.Contains(inOld, name) {
			lacking = append(lacking, lack{filepath.Join(old, name) + " is missing: the other folder has that run", false})
		}
	}
	if names == nil { // the two folders are not alike: Load says what is there
		return []string{""}, nil
	}
	return names, lacking
}

func runNames(folder string) (names []string) {
	for _, dir := range result.Runs(folder) {
		name, err := filepath.Rel(folder, dir)
		if err != nil || name == "." {
			name = ""
		}
		names = append(names, name)
	}
	return names
}

func (f *compareFlags) compare(c *cobra.Command, oldDirs, newDirs []string, opt compare.Options) (err error) {
	if done, err := f.compareMeshes(c.OutOrStdout(), slices.Concat(oldDirs, newDirs)); done {
		return err
	}
	if opt.RepeatsOld, err = f.loadMore(oldDirs[1:]); err != nil {
		return err
	}
	if opt.RepeatsNew, err = f.loadMore(newDirs[1:]); err != nil {
		return err
	}
	var recs [2]*result.Record
	for i, dir := range []string{oldDirs[0], newDirs[0]} {
		if recs[i], err = result.Load(dir); err != nil {
			return err
		}
		if err := f.usable(dir, recs[i]); err != nil {
			return err
		}
	}
	for _, rec := range slices.Concat(recs[1:], opt.RepeatsOld, opt.RepeatsNew) {
		opt.Environment = append(opt.Environment, fingerprint.Differences(recs[0].Run.Environment, rec.Run.Environment)...)
	}
	compared, err := compare.Runs(recs[0], recs[1], opt)
	var selection *compare.SelectionError
	if errors.As(err, &selection) && selection.What != "" {
		return exit.Usage("%v", err)
	}
	if err != nil {
		return err
	}
	if err := f.requireAlike(compared.Differences); err != nil {
		return err
	}
	if err := f.write(c.OutOrStdout(), compared); err != nil {
		return err
	}
	if compared.Passed != nil && !*compared.Passed {
		return exit.With(exit.Gate, errors.New(report.GateText(compared)))
	}
	if compared.Passed != nil && compared.Unable > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "cnibench: %d of %d figures have too few rounds to fail the gate\n", compared.Unable, len(compared.Changes))
	}
	return nil
}

// loadMore reads the repeated runs of a side.
func (f *compareFlags) loadMore(dirs []string) (list []*result.Record, err error) {
	for _, dir := range dirs {
		rec, err := result.Load(dir)
		if err != nil {
			return nil, err
		}
		if err := f.usable(dir, rec); err != nil {
			return nil, err
		}
		list = append(list, rec)
	}
	return list, nil
}

// requireAlike refuses runs that differ in what the flags don't allow.
func (f *compareFlags) requireAlike(all []compare.Difference) error {
	refused := slices.DeleteFunc(slices.Clone(all), func(d compare.Difference) bool { return f.force || f.mixed && d.OfVersions() })
	if len(refused) == 0 {
		return nil
	}
	flag := "--mixed-versions"
	if slices.ContainsFunc(refused, func(d compare.Difference) bool { return !d.OfVersions() }) {
		flag = "--force"
	}
	return exit.Usage("the runs differ in what matters:\n  %s\ncompare runs made alike, or add %s to compare these all the same",
		strings.Join(report.DifferenceTexts(refused), "\n  "), flag)
}

// usable says why the run in dir can't be compared as the flags ask.
func (f *compareFlags) usable(dir string, rec *result.Record) error {
	base := rec.Run.Baseline
	switch {
	case !hasValid(rec, ""):
		return exit.With(exit.Gate, fmt.Errorf("%s: no sample is valid; `cnibench report %s` says why", dir, dir))
	case f.vsBaseline && rec.Run.Plan.Unpaired:
		return exit.Usage("--vs-baseline: the rounds of %s were not measured beside its baseline's, so that they give no ratios by round; leave the flag out", dir)
	case f.vsBaseline && !hasValid(rec, base):
		return exit.Usage("--vs-baseline: %s has no valid sample of its baseline %s; leave the flag out, or run with the baseline", dir, base)
	}
	return nil
}

// hasValid says that the run has a valid sample, of the contender if one is
// named.
func hasValid(rec *result.Record, contender string) bool {
	return slices.ContainsFunc(rec.Samples, func(s result.Sample) bool {
		return s.Verdict == result.Valid && (contender == "" || s.Contender == contender)
	})
}

func (f *compareFlags) write(out io.Writer, compared *compare.Comparison) error {
	if f.output == "" {
		return report.WriteCompare(out, f.format, compared, report.Options{Color: console.UseColor(out), Width: console.Width(out)})
	}
	return atomicfile.ReplaceFile(f.output, func(w io.Writer) error {
		return report.WriteCompare(w, f.format, compared, report.Options{})
	})
}
