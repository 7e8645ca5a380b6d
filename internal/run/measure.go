package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/bench"
	"github.com/cnibench/cnibench/internal/check"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/fingerprint"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/run/underway"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/text/console"
)

// Run measures and reports. It must be called inside the place.
func (j *Job) Run(ctx context.Context) error {
	opened, err := j.Place.Open(ctx)
	if err == nil && j.Wrap != nil {
		opened.Arena, err = j.Wrap(opened.Arena)
	}
	if err != nil {
		return err
	}
	a := opened.Arena
	bar := console.NewProgress(os.Stderr, 0)
	defer bar.Done()
	runner := &bench.Runner{
		Arena: a, Catalogue: j.Catalogue.Contender, Exe: opened.Exe, Kernel: opened.Kernel, LineRate: opened.LineRate, MTU: opened.MTU, Log: console.Logger(console.Lines(bar.Message)),
		Progress: func(p bench.Progress) {
			if p.Total == 0 {
				bar.Message(p.Text)
				return
			}
			bar.Step(p.Done, p.Total, p.Text, p.Remaining)
		},
	}
	kept := false
	if j.request.Keep {
		runner.Keep = func(ctx context.Context, endpoints []string) {
			kept = true
			bar.Message(fmt.Sprintf("kept up until Ctrl-C; look inside with: cnibench enter %s", strings.Join(endpoints, "|")))
			<-ctx.Done()
		}
	}
	store, sealed, run, err := j.openStore(ctx, a, runner)
	if ctx.Err() != nil && err != nil {
		return fmt.Errorf("interrupted %w", errNothingSealed)
	}
	if err != nil {
		return err
	}
	defer store.Close()
	plan := &run.Plan
	runner.Store = store
	interim := &underway.Interim{Store: store}
	view := &underway.Preview{Bar: bar, Interim: interim, Plan: plan, Baseline: j.request.Baseline}
	if j.resumed != nil {
		view.Baseline = j.resumed.Baseline
	}
	runner.Progress = view.Wrap(runner.Progress)
	left := 0
	if j.request.GuestFollows && vm.Available() == nil {
		left = len(leftToGuest(run))
	}
	end := newStopping(j.request, plan, left, interim.Report, bar.Message)
	runner.Search, runner.Enough = end.searches, end.enough
	runErr := j.withNextStep(ctx, runner.Run(ctx, plan, sealed), kept, store.Dir())
	if runErr == nil {
		runErr = store.End(time.Now())
	}
	bar.Done()
	return errors.Join(runErr, j.report(store.Dir(), runErr == nil))
}

// withNextStep adds to the runner's error what the user can do. kept says that --keep
// held a complete run until the user interrupted it.
func (j *Job) withNextStep(ctx context.Context, err error, kept bool, dir string) error {
	var left error
	if errors.Is(err, bench.ErrLeft) {
		clean := "cnibench clean"
		if j.request.Arena == Kube {
			clean += " --arena " + Kube
		}
		left = fmt.Errorf("remove what may be left with `%s`", clean)
	}
	if ctx.Err() != nil && !kept {
		err = errors.Join(fmt.Errorf("interrupted; %w", j.request.sealed(dir)), left)
	} else {
		err = errors.Join(err, left)
	}
	if left == nil {
		return err
	}
	return exit.With(exit.Failed, err) // whatever the exit code of its cause
}

// errNothingSealed ends the error of a run that has no sample.
var errNothingSealed = errors.New("before the first sample; nothing was written")

// sealed returns the end of an error's text: what of the run in dir is kept, and how to
// resume it.
func (f *Request) sealed(dir string) error {
	return fmt.Errorf("what is sealed is a valid run: go on with `%s`", f.resumption(dir))
}

// resumption returns the command line that resumes the run in dir.
func (f *Request) resumption(dir string) string {
	return strings.Join(append([]string{"cnibench run --resume", text.ShellWord(dir)}, f.unplanned()...), " ")
}

// fingerprinted returns the environment of the first contender's first node, with the
// keys that the arena adds.
func fingerprinted(ctx context.Context, runner *bench.Runner, plan *result.Plan) (result.Environment, error) {
	env, err := runner.Fingerprint(ctx, plan.Contenders[0])
	if err != nil {
		return nil, err
	}
	maps.Copy(env, runner.Arena.Environment())
	env[analysis.CPUClockKey] = analysis.IdleClock
	return env, nil
}

// openStore makes the run directory of a new run, or opens that of a resumed one.
// It returns the store, the keys of the samples that are sealed, and the plan.
func (j *Job) openStore(ctx context.Context, a arena.Arena, runner *bench.Runner) (*result.Store, map[result.Key]bool, *result.Run, error) {
	if j.resumed != nil {
		store, rec, err := result.Resume(j.request.Out)
		if err != nil {
			return nil, nil, nil, err
		}
		err = j.checkSame(ctx, a, runner, &rec.Run)
		if err != nil {
			return nil, nil, nil, errors.Join(err, store.Close())
		}
		store.SetTool(j.request.Tool, rec.Run.Tool)
		return store, rec.Sealed(), &rec.Run, nil
	}
	run := &result.Run{
		Schema: result.RunSchema, Tool: j.request.Tool, Started: time.Now().UTC(), Arena: a.Name(), Baseline: j.request.Baseline, Plan: j.Plan,
	}
	run.ID = filepath.Base(j.request.Out)
	if err := j.enlist(ctx, a, run); err != nil {
		return nil, nil, nil, err
	}
	for i := range run.Unsupported {
		u := &run.Unsupported[i]
		u.Reason, u.Remedy = a.Anonymous(u.Reason), a.Anonymous(u.Remedy)
	}
	if len(run.Plan.Contenders) == 0 {
		return nil, nil, nil, j.measureNothing(a, run)
	}
	env, err := fingerprinted(ctx, runner, &run.Plan)
	if err != nil {
		return nil, nil, nil, err
	}
	run.Environment = env
	maps.Copy(run.Environment, j.request.selfTested(env["kernel.release"]))
	if j.request.Checks != "" {
		say := func(id string) { runner.Progress(bench.Progress{Text: "check: " + id}) }
		found, err := checkPlan(ctx, a, j.Catalogue, runner.Exe, j.request.Checks, &run.Plan, say)
		if err != nil {
			return nil, nil, nil, err
		}
		for key, value := range found {
			run.Environment[key] = a.Anonymous(value)
		}
	}
	// A folder that can't be written is an error before the search for rates.
	if err := os.MkdirAll(j.request.Out, 0o755); err != nil {
		return nil, nil, nil, err
	}
	if err := runner.Calibrate(ctx, run, run.Plan.Contenders[0]); err != nil {
		_ = os.Remove(j.request.Out) // empty, unless somebody else uses it
		return nil, nil, nil, err
	}
	store, err := result.Create(j.request.Out, run)
	if errors.Is(err, result.ErrExists) {
		return nil, nil, nil, exit.With(exit.WrongUsage, err)
	}
	return store, nil, run, err
}

// checkSame refuses to resume a run on another machine, or if a contender of its plan
// can't run any more: sealed samples are never repeated, so new samples must be
// comparable with them.
func (j *Job) checkSame(ctx context.Context, a arena.Arena, runner *bench.Runner, run *result.Run) error {
	env, err := fingerprinted(ctx, runner, &run.Plan)
	if err != nil {
		return err
	}
	if err := fingerprint.SameMachine(run.Environment, env); err != nil {
		return err
	}
	if run.Environment[analysis.CPUClockKey] != env[analysis.CPUClockKey] {
		return exit.Usage("the run's CPU figures are sums of the kernel's ticks, and this version goes by its idle time; go on with cnibench %s, or begin a new run", run.Tool)
	}
	if tool := j.request.Tool; tool != run.Tool {
		runner.Log.Warn("the run was begun by another version of cnibench", "then", run.Tool.Version, "now", tool.Version)
	}
	for _, entry := range run.Plan.Contenders {
		c, err := j.Catalogue.Contender(entry.ID)
		if err != nil {
			return err
		}
		if err := a.Supports(ctx, c); err != nil {
			return fmt.Errorf("contender %s: %w", c.ID, err)
		}
		at := slices.IndexFunc(run.Contenders, func(i result.ContenderInfo) bool { return i.ID == c.ID })
		if at >= 0 && run.Contenders[at].SHA256 != "" && run.Contenders[at].SHA256 != c.SHA256 {
			return exit.Usage("contender %s: its file is not the one with which the run was begun; go on with cnibench %s, or begin a new run", c.ID, run.Tool)
		}
	}
	return nil
}

// measureNothing writes a run without contenders, which holds the reasons, and returns
// an error with exit.Unsupported. The error has no text if a guest follows, which may
// run the contenders.
func (j *Job) measureNothing(a arena.Arena, run *result.Run) error {
	run.Environment = result.Environment{"kernel.release": lab.KernelRelease()}
	maps.Copy(run.Environment, a.Environment())
	store, err := result.Create(j.request.Out, run)
	if err != nil {
		return err
	}
	if err := store.Close(); err != nil || j.request.GuestFollows {
		return exit.With(exit.Unsupported, err)
	}
	return exit.With(exit.Unsupported, fmt.Errorf("kernel %s runs none of %s either", lab.KernelRelease(), strings.Join(j.only, ", ")))
}

// checkPlan runs the checks of the list once on every contender of the plan,
// and returns what they found as keys of the run's environment.
func checkPlan(ctx context.Context, a arena.Arena, cat *Catalogue, exe, list string, plan *result.Plan, say func(string)) (result.Environment, error) {
	checks, err := check.Named(list)
	if err != nil {
		return nil, err
	}
	runner := &check.Runner{Arena: a, Exe: exe, Progress: say}
	var all []check.Result
	for _, entry := range plan.Contenders {
		c, err := cat.Contender(entry.ID)
		if err != nil {
			return nil, err
		}
		results, err := runner.Run(ctx, c, entry.Underlay, checks)
		if err != nil {
			return nil, err
		}
		all = append(all, results...)
	}
	return check.Environment(all), nil
}
