package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/bench"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/fingerprint"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
	"github.com/cnibench/cnibench/internal/workload"
)

// job is a checked command line of `cnibench run`: a new run, or one to go on
// with.
type job struct {
	flags     *runFlags
	options   lab.Options
	catalogue *catalogue
	wanted    []string // contenders asked for by name; nil: by what is supported
	only      []string // contenders that are considered; nil: all
	resumed   *result.Run
	contained bool        // inside the lab's container
	plan      result.Plan // without contenders where the arena decides
	// wrap, where set, stands between the runner and the arena.
	wrap func(arena.Arena) (arena.Arena, error)
}

// job resolves the flags before anything is made.
func (f *runFlags) job(c *cobra.Command) (*job, error) {
	j := &job{flags: f}
	if f.partOf != "" {
		return j, j.partPlan(c)
	}
	if f.resume != "" {
		rec, err := result.Load(f.resume)
		if err != nil {
			return nil, err
		}
		if err := f.adopt(c, &rec.Run.Plan); err != nil {
			return nil, err
		}
		f.out, j.resumed, j.plan = f.resume, &rec.Run, rec.Run.Plan
	}
	var err error
	if j.options, err = f.labOptions(); err != nil {
		return nil, err
	}
	if j.catalogue, err = loadCatalogue(j.options.Custom); err != nil {
		return nil, err
	}
	if j.resumed != nil {
		return j, j.programs(j.plan.Steps)
	}
	return j, j.newPlan(c)
}

// newPlan makes the plan of a new run, as far as it does not hang on what the
// kernel can do.
func (j *job) newPlan(c *cobra.Command) error {
	f := j.flags
	s, err := j.catalogue.suite(f.suite)
	if err != nil {
		return err
	}
	steps, err := s.Expand(f.rates, f.services)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	j.plan = result.Plan{
		Suite: s.ID, Rounds: s.Rounds, Seed: f.seed, Steps: steps, Settings: f.settings(),
		Duration: unit.Seconds(s.Duration.Seconds()), Warmup: unit.Seconds(s.Warmup.Seconds()),
	}
	if c.Flags().Changed("rounds") {
		j.plan.Rounds = f.rounds
	}
	if c.Flags().Changed("duration") {
		j.plan.Duration = unit.Seconds(f.duration.Seconds())
	}
	if c.Flags().Changed("warmup") {
		j.plan.Warmup = unit.Seconds(f.warmup.Seconds())
	}
	if !c.Flags().Changed("seed") {
		j.plan.Seed = rand.Uint64() >> 12 // exact in a JSON reader's double
	}
	if _, err := j.catalogue.contender(f.baseline); err != nil {
		return err
	}
	switch f.contenders {
	case "supported", "all":
	default:
		for _, id := range strings.Split(f.contenders, ",") {
			if id = strings.TrimSpace(id); id == "" {
				continue
			}
			if id == lab.CustomID && j.options.Custom == nil {
				return usage("contender %s: give its configuration with --cni-conf FILE", id)
			}
			if _, err := j.catalogue.contender(id); err != nil {
				return err
			}
			if !slices.Contains(j.wanted, id) {
				j.wanted = append(j.wanted, id)
			}
		}
		if len(j.wanted) == 0 {
			return usage("--contenders: none given; see `cnibench list contenders`")
		}
		if j.options.Custom != nil && !slices.Contains(j.wanted, lab.CustomID) {
			j.wanted = append(j.wanted, lab.CustomID)
		}
	}
	return j.programs(steps)
}

// programs checks that what the steps run is installed.
func (j *job) programs(steps []result.Step) error {
	var missing []error
	seen := map[string]bool{}
	for _, step := range steps {
		w, err := workload.Lookup(step.Workload)
		if err != nil {
			return err
		}
		for _, p := range w.Info().Programs {
			if seen[p.Name] {
				continue
			}
			seen[p.Name] = true
			if err := host.Have(p.Name); err != nil {
				missing = append(missing, &host.ProgramError{Program: p.Name, Package: p.Package})
			}
		}
	}
	if len(missing) > 0 {
		return &exitError{exitUnsupported, errors.Join(missing...)}
	}
	return nil
}

// run measures and reports. It runs inside the lab's container.
func (j *job) run(ctx context.Context, c *cobra.Command) error {
	a, err := lab.New(j.options)
	if err == nil && j.wrap != nil {
		a, err = j.wrap(a)
	}
	if err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	bar := newProgress(os.Stderr, 0)
	defer bar.Done()
	runner := &bench.Runner{
		Arena: a, Catalogue: j.catalogue.contender, Exe: exe, Kernel: lab.KernelRelease(), LineRate: j.options.LineRate, MTU: j.options.MTU, Log: logger(lines(bar.Message)),
		Progress: func(p bench.Progress) {
			if p.Total == 0 {
				bar.Message(p.Text)
				return
			}
			bar.Step(p.Done, p.Total, p.Text, p.Remaining)
		},
	}
	kept := false
	if j.flags.keep {
		runner.Keep = func(ctx context.Context, endpoints []string) {
			kept = true
			bar.Message(fmt.Sprintf("kept up until Ctrl-C; look inside with: cnibench enter %s", strings.Join(endpoints, "|")))
			<-ctx.Done()
		}
	}
	store, sealed, plan, err := j.open(ctx, a, runner)
	if ctx.Err() != nil && err != nil {
		return errors.New("interrupted before the first sample; nothing was written")
	}
	if err != nil {
		return err
	}
	defer store.Close()
	runner.Store = store
	runErr := runner.Run(ctx, plan, sealed)
	bar.Done()
	if ctx.Err() != nil && !kept {
		runErr = fmt.Errorf("interrupted; what is sealed is a valid run: go on with `cnibench run --resume %s`", store.Dir())
	}
	return errors.Join(runErr, j.report(c, store.Dir(), runErr == nil))
}

// open makes the run directory, or opens it again.
func (j *job) open(ctx context.Context, a arena.Arena, runner *bench.Runner) (*result.Store, map[result.Key]bool, *result.Plan, error) {
	if j.resumed != nil {
		store, rec, err := result.Resume(j.flags.out)
		if err != nil {
			return nil, nil, nil, err
		}
		err = j.same(ctx, a, runner, &rec.Run)
		if err != nil {
			return nil, nil, nil, errors.Join(err, store.Close())
		}
		return store, rec.Sealed(), &rec.Run.Plan, nil
	}
	run := &result.Run{
		Schema: result.RunSchema, Tool: tool(), Started: time.Now().UTC(), Arena: a.Name(), Baseline: j.flags.baseline, Plan: j.plan,
	}
	run.ID = filepath.Base(j.flags.out)
	if err := j.enlist(ctx, a, run); err != nil {
		return nil, nil, nil, err
	}
	env, err := runner.Fingerprint(ctx, run.Plan.Contenders[0])
	if err != nil {
		return nil, nil, nil, err
	}
	run.Environment = env
	if j.flags.checks != "" {
		say := func(id string) { runner.Progress(bench.Progress{Text: "check: " + id}) }
		found, err := checkPlan(ctx, a, j.catalogue, runner.Exe, j.flags.checks, &run.Plan, say)
		if err != nil {
			return nil, nil, nil, err
		}
		maps.Copy(run.Environment, found)
	}
	ofGuest(run)
	// Whether it can be written shows before the search for rates, not after.
	if err := os.MkdirAll(j.flags.out, 0o755); err != nil {
		return nil, nil, nil, err
	}
	if err := runner.Calibrate(ctx, &run.Plan, run.Plan.Contenders[0]); err != nil {
		_ = os.Remove(j.flags.out) // empty, unless somebody else uses it
		return nil, nil, nil, err
	}
	store, err := result.Create(j.flags.out, run)
	if errors.Is(err, result.ErrExists) {
		return nil, nil, nil, &exitError{exitUsage, err}
	}
	return store, nil, &run.Plan, err
}

// same refuses to go on with a run on another machine, or where a contender
// of its plan can't run any more: sealed samples are never repeated, so none
// may be spoiled by that.
func (j *job) same(ctx context.Context, a arena.Arena, runner *bench.Runner, run *result.Run) error {
	env, err := runner.Fingerprint(ctx, run.Plan.Contenders[0])
	if err != nil {
		return err
	}
	if err := fingerprint.SameMachine(run.Environment, env); err != nil {
		return err
	}
	if now := tool(); now != run.Tool {
		runner.Log.Warn("the run was begun by another version of cnibench", "then", run.Tool.Version, "now", now.Version)
	}
	for _, entry := range run.Plan.Contenders {
		c, err := j.catalogue.contender(entry.ID)
		if err != nil {
			return err
		}
		if err := a.Supports(ctx, c); err != nil {
			return fmt.Errorf("contender %s: %w", c.ID, err)
		}
	}
	return nil
}

// enlist decides which contenders run: the baseline first, on every underlay
// that one of the others runs on.
func (j *job) enlist(ctx context.Context, a arena.Arena, run *result.Run) error {
	base, err := j.catalogue.contender(j.flags.baseline)
	if err != nil {
		return err
	}
	if err := a.Supports(ctx, base); err != nil {
		return fmt.Errorf("baseline %s: %w", base.ID, err)
	}
	candidates := j.catalogue.contenders
	if j.wanted != nil {
		candidates = nil
		for _, id := range j.wanted {
			c, err := j.catalogue.contender(id)
			if err != nil {
				return err
			}
			candidates = append(candidates, c)
		}
	}
	if j.only != nil {
		candidates = slices.DeleteFunc(slices.Clone(candidates), func(c *contender.Contender) bool { return !slices.Contains(j.only, c.ID) })
	}
	var entries []result.Entry
	var underlays []string
	run.Contenders = append(run.Contenders, describe(base))
	for _, c := range candidates {
		err := a.Supports(ctx, c)
		switch u := arena.AsUnsupported(err); {
		case u != nil && (j.wanted != nil || c.ID == lab.CustomID) && !j.leaves(u): // asked for by name
			return fmt.Errorf("contender %s: %w", c.ID, toGuest(u))
		case u != nil:
			u = toGuest(u)
			run.Unsupported = append(run.Unsupported, result.Unsupported{Contender: c.ID, Reason: u.Reason, Remedy: u.Remedy, OtherKernel: u.OtherKernel})
			continue
		case err != nil:
			return err
		}
		underlay := a.Variant(c)
		if !slices.Contains(underlays, underlay) {
			underlays = append(underlays, underlay)
		}
		if c.ID == base.ID {
			continue
		}
		entries = append(entries, result.Entry{ID: c.ID, Underlay: underlay})
		run.Contenders = append(run.Contenders, describe(c))
	}
	if j.wanted != nil && len(underlays) == 0 && len(leftToGuest(run)) > 0 {
		return &exitError{exitAllInGuest, nil}
	}
	var baselines []result.Entry
	for _, underlay := range underlays {
		baselines = append(baselines, result.Entry{ID: base.ID, Underlay: underlay})
	}
	run.Plan.Contenders = append(baselines, entries...)
	return j.findGaps(a, run)
}

// findGaps finds the steps that contenders of the plan lack the path of.
func (j *job) findGaps(a arena.Arena, run *result.Run) error {
	seen := map[string]bool{}
	for _, entry := range run.Plan.Contenders {
		if seen[entry.ID] {
			continue
		}
		seen[entry.ID] = true
		c, err := j.catalogue.contender(entry.ID)
		if err != nil {
			return err
		}
		for _, step := range run.Plan.Steps {
			err := a.HasPath(c, step.Path)
			u := arena.AsUnsupported(err)
			if u == nil {
				if err != nil {
					return err
				}
				continue
			}
			run.Plan.Gaps = append(run.Plan.Gaps, result.Gap{Contender: c.ID, Step: step.ID})
			if c.ID != run.Baseline { // whose figures from pod to pod stand in
				run.Unsupported = append(run.Unsupported, result.Unsupported{Contender: c.ID, Step: step.ID, Reason: u.Reason, Remedy: u.Remedy})
			}
		}
	}
	return nil
}

// describe is what a reader of the run must know of the contender.
func describe(c *contender.Contender) result.ContenderInfo {
	info := result.ContenderInfo{
		ID: c.ID, Product: c.Product, Version: c.Version, Summary: c.Summary, Overhead: c.Datapath.Overhead,
		Own: c.Lab.Own, Reproduced: c.Lab.Reproduced,
	}
	// What the lab has of the datapath.
	if c.Lab.Attach != nil {
		info.Datapath = c.Datapath.Attach
	}
	if c.Lab.Transport != nil {
		info.Datapath += " × " + c.Datapath.Transport
	}
	if c.Lab.Service != nil {
		info.Datapath += " × " + c.Datapath.Services
	}
	return info
}

// report prints the table and writes the page, of a partial run too.
func (j *job) report(c *cobra.Command, dir string, whole bool) error {
	rec, err := result.Load(dir)
	if err != nil {
		return err
	}
	if whole && os.Getenv(partsEnv) == "1" && j.contained && len(leftToGuest(&rec.Run)) > 0 {
		return nil // the caller reports, when the guest has run the rest
	}
	r := assemble(dir, rec, analysis.Options{})
	out := c.OutOrStdout()
	var page bytes.Buffer
	if err := report.Write(&page, string(report.HTML), r, report.Options{}); err != nil {
		return err
	}
	err = result.WriteFile(dir, "report.html", func(w io.Writer) error { _, err := page.WriteTo(w); return err })
	if werr := report.Write(out, string(report.Text), r, report.Options{Color: useColor(out), Width: terminalWidth(out)}); werr != nil {
		return errors.Join(err, werr)
	}
	fmt.Fprintf(out, "\nReport: %s\n", filepath.Join(dir, "report.html"))
	if err != nil {
		return err
	}
	if whole && !slices.ContainsFunc(rec.Samples, func(s result.Sample) bool { return s.Verdict == result.Valid && s.Step != result.SetupStep }) {
		return &exitError{exitGate, errors.New("no sample was valid; the findings above say why")}
	}
	return nil
}

// lines is a writer whose lines go through the function, so that they don't
// break a live progress bar.
type lines func(string)

func (l lines) Write(p []byte) (int, error) {
	l(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}
