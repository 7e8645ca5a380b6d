package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/bench"
	"github.com/cnibench/cnibench/internal/check"
	"github.com/cnibench/cnibench/internal/fingerprint"
	"github.com/cnibench/cnibench/internal/printable"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
)

// job is a checked command line of `cnibench run`: a new run, or one to go on
// with.
type job struct {
	flags     *runFlags
	ground    ground
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
	row, err := findArena(f.arena)
	if err != nil {
		return nil, err
	}
	if f.resume != "" {
		rec, err := result.Load(f.resume)
		if err != nil {
			return nil, err
		}
		if row, err = row.goesOn(rec.Run.Arena, f.given["arena"]); err != nil {
			return nil, err
		}
		f.arena, f.out, j.resumed, j.plan = row.name, f.resume, &rec.Run, rec.Run.Plan
	}
	if err := row.foreign(c); err != nil {
		return nil, err
	}
	if err := row.check(f); err != nil {
		return nil, err
	}
	if err := f.privilegedForNothing(); err != nil {
		return nil, err
	}
	if f.partOf != "" {
		return j, j.partPlan(c)
	}
	if j.resumed != nil {
		if err := keepsPlan(c, row.fixed); err != nil {
			return nil, err
		}
		if err := f.adopt(c, j.plan.Settings); err != nil {
			return nil, err
		}
	}
	if j.ground, err = row.ground(f); err != nil {
		return nil, err
	}
	if j.catalogue, err = loadCatalogue(j.ground.own()...); err != nil {
		return nil, err
	}
	if j.resumed != nil {
		return j, j.programs(j.plan.Steps)
	}
	return j, j.newPlan(c)
}

// run measures and reports. It runs inside the ground.
func (j *job) run(ctx context.Context, c *cobra.Command) error {
	at, err := j.ground.open(ctx)
	if err == nil && j.wrap != nil {
		at.arena, err = j.wrap(at.arena)
	}
	if err != nil {
		return err
	}
	a := at.arena
	bar := newProgress(os.Stderr, 0)
	defer bar.Done()
	runner := &bench.Runner{
		Arena: a, Catalogue: j.catalogue.contender, Exe: at.exe, Kernel: at.kernel, LineRate: at.lineRate, MTU: at.mtu, Log: logger(lines(bar.Message)),
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
	runErr := j.next(ctx, runner.Run(ctx, plan, sealed), kept, store.Dir())
	bar.Done()
	return errors.Join(runErr, j.report(c, store.Dir(), runErr == nil))
}

// next is the runner's error with what to do about it. kept says that the run
// was complete when it was interrupted.
func (j *job) next(ctx context.Context, err error, kept bool, dir string) error {
	var left error
	if errors.Is(err, bench.ErrLeft) {
		clean := "cnibench clean"
		if j.flags.arena == arenaKube {
			clean += " --arena " + arenaKube
		}
		left = fmt.Errorf("remove what may be left with `%s`", clean)
	}
	if ctx.Err() != nil && !kept {
		err = errors.Join(fmt.Errorf("interrupted; what is sealed is a valid run: go on with `%s`", j.flags.resumption(dir)), left)
	} else {
		err = errors.Join(err, left)
	}
	if left == nil {
		return err
	}
	return &exitError{exitFailed, err} // whatever kept it from going down
}

// privilegedForNothing refuses privileged pods in a run that needs none.
func (f *runFlags) privilegedForNothing() error {
	if !f.kube.privileged || f.resume != "" {
		return nil
	}
	if f.checks != "" {
		checks, err := check.Named(f.checks)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(checks, func(c check.Check) bool { return c.Info().Name == "encryption" }) {
			return nil
		}
	}
	return usage("--privileged: measurements need no privileged pods, only the check of encryption does; leave it out, or add --check encryption")
}

// resumption is the command line that goes on with the run in dir.
func (f *runFlags) resumption(dir string) string {
	return strings.Join(append([]string{"cnibench run --resume", printable.Word(dir)}, f.again()...), " ")
}

// fingerprinted is the environment as the first contender's first node sees it,
// with what the arena knows besides.
func fingerprinted(ctx context.Context, runner *bench.Runner, plan *result.Plan) (result.Environment, error) {
	env, err := runner.Fingerprint(ctx, plan.Contenders[0])
	if err != nil {
		return nil, err
	}
	if a, ok := runner.Arena.(interface{ Environment() result.Environment }); ok {
		maps.Copy(env, a.Environment())
	}
	return env, nil
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
	if len(run.Plan.Contenders) == 0 {
		return nil, nil, nil, j.nothing(run)
	}
	for i := range run.Unsupported {
		u := &run.Unsupported[i]
		u.Reason, u.Remedy = runner.Anonymous(u.Reason), runner.Anonymous(u.Remedy)
	}
	env, err := fingerprinted(ctx, runner, &run.Plan)
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
		for key, value := range found {
			run.Environment[key] = runner.Anonymous(value)
		}
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
	env, err := fingerprinted(ctx, runner, &run.Plan)
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
	if whole {
		return noneValid(dir, rec)
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
