package run

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

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/bench"
	"github.com/cnibench/cnibench/internal/check"
	"github.com/cnibench/cnibench/internal/console"
	"github.com/cnibench/cnibench/internal/exit"
	"github.com/cnibench/cnibench/internal/fingerprint"
	"github.com/cnibench/cnibench/internal/printable"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
)

// Job is a checked command line of `cnibench run`: a new run, or one to go on
// with.
type Job struct {
	flags     *Request
	place     Place
	Catalogue *Catalogue
	Wanted    []string // contenders asked for by name; nil: by what is supported
	only      []string // contenders that are considered; nil: all
	resumed   *result.Run
	contained bool        // inside the lab's container
	Plan      result.Plan // without contenders where the arena decides
	// Wrap, where set, stands between the runner and the arena.
	Wrap func(arena.Arena) (arena.Arena, error)
}

// Prepare resolves the request before anything is made.
func (f *Request) Prepare() (*Job, error) {
	j := &Job{flags: f}
	kind, err := FindArena(f.Arena)
	if err != nil {
		return nil, err
	}
	if f.Resume != "" {
		if err := owned(f.Resume); err != nil {
			return nil, err
		}
		rec, err := result.Load(f.Resume)
		if err != nil {
			return nil, err
		}
		if kind, err = kind.goesOn(rec.Run.Arena, f.Given["arena"]); err != nil {
			return nil, err
		}
		f.Arena, f.Out, j.resumed, j.Plan = kind.Name, f.Resume, &rec.Run, rec.Run.Plan
	}
	if err := kind.Foreign(f.Given); err != nil {
		return nil, err
	}
	if err := kind.check(f); err != nil {
		return nil, err
	}
	if err := f.privilegedForNothing(); err != nil {
		return nil, err
	}
	if f.PartOf != "" {
		return j, j.partPlan()
	}
	if j.resumed != nil {
		if err := f.keepsPlan(kind.fixed); err != nil {
			return nil, err
		}
		if err := f.Adopt(j.Plan.Settings); err != nil {
			return nil, err
		}
	}
	if j.place, err = kind.place(f); err != nil {
		return nil, err
	}
	if j.Catalogue, err = LoadCatalogue(j.place.Own()...); err != nil {
		return nil, err
	}
	if j.resumed != nil {
		return j, j.programs(j.Plan.Steps)
	}
	return j, j.newPlan()
}

// Lead carries the job out in the arena that it is for.
func (j *Job) Lead(ctx context.Context) error { return j.place.Lead(ctx, j) }

// Run measures and reports. It runs inside the place.
func (j *Job) Run(ctx context.Context) error {
	at, err := j.place.Open(ctx)
	if err == nil && j.Wrap != nil {
		at.Arena, err = j.Wrap(at.Arena)
	}
	if err != nil {
		return err
	}
	a := at.Arena
	bar := console.NewProgress(os.Stderr, 0)
	defer bar.Done()
	runner := &bench.Runner{
		Arena: a, Catalogue: j.Catalogue.Contender, Exe: at.Exe, Kernel: at.Kernel, LineRate: at.LineRate, MTU: at.MTU, Log: console.Logger(console.Lines(bar.Message)),
		Progress: func(p bench.Progress) {
			if p.Total == 0 {
				bar.Message(p.Text)
				return
			}
			bar.Step(p.Done, p.Total, p.Text, p.Remaining)
		},
	}
	kept := false
	if j.flags.Keep {
		runner.Keep = func(ctx context.Context, endpoints []string) {
			kept = true
			bar.Message(fmt.Sprintf("kept up until Ctrl-C; look inside with: cnibench enter %s", strings.Join(endpoints, "|")))
			<-ctx.Done()
		}
	}
	store, sealed, plan, err := j.open(ctx, a, runner)
	if ctx.Err() != nil && err != nil {
		return fmt.Errorf("interrupted %w", errNothingSealed)
	}
	if err != nil {
		return err
	}
	defer store.Close()
	runner.Store = store
	sight := &preview{bar: bar, store: store, plan: plan, baseline: j.flags.Baseline}
	if j.resumed != nil {
		sight.baseline = j.resumed.Baseline
	}
	runner.Progress = sight.before(runner.Progress)
	runErr := j.next(ctx, runner.Run(ctx, plan, sealed), kept, store.Dir())
	bar.Done()
	return errors.Join(runErr, j.report(store.Dir(), runErr == nil))
}

// next is the runner's error with what to do about it. kept says that the run
// was complete when it was interrupted.
func (j *Job) next(ctx context.Context, err error, kept bool, dir string) error {
	var left error
	if errors.Is(err, bench.ErrLeft) {
		clean := "cnibench clean"
		if j.flags.Arena == Kube {
			clean += " --arena " + Kube
		}
		left = fmt.Errorf("remove what may be left with `%s`", clean)
	}
	if ctx.Err() != nil && !kept {
		err = errors.Join(fmt.Errorf("interrupted; %w", j.flags.sealed(dir)), left)
	} else {
		err = errors.Join(err, left)
	}
	if left == nil {
		return err
	}
	return exit.With(exit.Failed, err) // whatever kept it from going down
}

// privilegedForNothing refuses privileged pods in a run that needs none.
func (f *Request) privilegedForNothing() error {
	if !f.Cluster.Privileged || f.Resume != "" {
		return nil
	}
	if f.Checks != "" {
		checks, err := check.Named(f.Checks)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(checks, func(c check.Check) bool { return c.Info().Name == "encryption" }) {
			return nil
		}
	}
	return exit.Usage("--privileged: measurements need no privileged pods, only the check of encryption does; leave it out, or add --check encryption")
}

// errNothingSealed is the end of a run that has no sample.
var errNothingSealed = errors.New("before the first sample; nothing was written")

// sealed tells what an ended run is worth, and how to go on with it.
func (f *Request) sealed(dir string) error {
	return fmt.Errorf("what is sealed is a valid run: go on with `%s`", f.resumption(dir))
}

// resumption is the command line that goes on with the run in dir.
func (f *Request) resumption(dir string) string {
	return strings.Join(append([]string{"cnibench run --resume", printable.Word(dir)}, f.unplanned()...), " ")
}

// fingerprinted is the environment as the first contender's first node sees it,
// with what the arena knows besides.
func fingerprinted(ctx context.Context, runner *bench.Runner, plan *result.Plan) (result.Environment, error) {
	env, err := runner.Fingerprint(ctx, plan.Contenders[0])
	if err != nil {
		return nil, err
	}
	maps.Copy(env, runner.Arena.Environment())
	return env, nil
}

// open makes the run directory, or opens it again.
func (j *Job) open(ctx context.Context, a arena.Arena, runner *bench.Runner) (*result.Store, map[result.Key]bool, *result.Plan, error) {
	if j.resumed != nil {
		store, rec, err := result.Resume(j.flags.Out)
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
		Schema: result.RunSchema, Tool: j.flags.Tool, Started: time.Now().UTC(), Arena: a.Name(), Baseline: j.flags.Baseline, Plan: j.Plan,
	}
	run.ID = filepath.Base(j.flags.Out)
	if err := j.enlist(ctx, a, run); err != nil {
		return nil, nil, nil, err
	}
	if len(run.Plan.Contenders) == 0 {
		return nil, nil, nil, j.nothing(a, run)
	}
	for i := range run.Unsupported {
		u := &run.Unsupported[i]
		u.Reason, u.Remedy = a.Anonymous(u.Reason), a.Anonymous(u.Remedy)
	}
	env, err := fingerprinted(ctx, runner, &run.Plan)
	if err != nil {
		return nil, nil, nil, err
	}
	run.Environment = env
	if j.flags.Checks != "" {
		say := func(id string) { runner.Progress(bench.Progress{Text: "check: " + id}) }
		found, err := checkPlan(ctx, a, j.Catalogue, runner.Exe, j.flags.Checks, &run.Plan, say)
		if err != nil {
			return nil, nil, nil, err
		}
		for key, value := range found {
			run.Environment[key] = a.Anonymous(value)
		}
	}
	// Whether it can be written shows before the search for rates, not after.
	if err := os.MkdirAll(j.flags.Out, 0o755); err != nil {
		return nil, nil, nil, err
	}
	if err := runner.Calibrate(ctx, &run.Plan, run.Plan.Contenders[0]); err != nil {
		_ = os.Remove(j.flags.Out) // empty, unless somebody else uses it
		return nil, nil, nil, err
	}
	store, err := result.Create(j.flags.Out, run)
	if errors.Is(err, result.ErrExists) {
		return nil, nil, nil, exit.With(exit.WrongUsage, err)
	}
	return store, nil, &run.Plan, err
}

// same refuses to go on with a run on another machine, or where a contender
// of its plan can't run any more: sealed samples are never repeated, so none
// may be spoiled by that.
func (j *Job) same(ctx context.Context, a arena.Arena, runner *bench.Runner, run *result.Run) error {
	env, err := fingerprinted(ctx, runner, &run.Plan)
	if err != nil {
		return err
	}
	if err := fingerprint.SameMachine(run.Environment, env); err != nil {
		return err
	}
	if now := j.flags.Tool; now != run.Tool {
		runner.Log.Warn("the run was begun by another version of cnibench", "then", run.Tool.Version, "now", now.Version)
	}
	for _, entry := range run.Plan.Contenders {
		c, err := j.Catalogue.Contender(entry.ID)
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
func (j *Job) report(dir string, whole bool) error {
	rec, err := result.Load(dir)
	if err != nil {
		return err
	}
	if whole && os.Getenv(partsEnv) == "1" && j.contained && len(leftToGuest(&rec.Run)) > 0 {
		return nil // the caller reports, when the guest has run the rest
	}
	r := Assemble(dir, rec, analysis.Options{})
	out := j.flags.Stdout
	var page bytes.Buffer
	if err := report.Write(&page, string(report.HTML), r, report.Options{}); err != nil {
		return err
	}
	err = result.WriteFile(dir, "report.html", func(w io.Writer) error { _, err := page.WriteTo(w); return err })
	if werr := report.Write(out, string(report.Text), r, report.Options{Color: console.UseColor(out), Width: console.Width(out)}); werr != nil {
		return errors.Join(err, werr)
	}
	fmt.Fprintf(out, "\nReport: %s\nIn a browser: cnibench explore %s\n", filepath.Join(dir, "report.html"), printable.Word(dir))
	if err != nil {
		return err
	}
	if whole {
		return NoneValid(dir, rec)
	}
	return nil
}
