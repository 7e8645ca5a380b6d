package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/bench"
	"github.com/cnibench/cnibench/internal/check"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/fingerprint"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text/console"
)

// MeasureVerb measures what the plan says and writes the run directory.
func MeasureVerb() Verb[Measurement, struct{}] {
	return Verb[Measurement, struct{}]{
		Name: "run",
		Do: func(ctx context.Context, in *Inside, task Measurement) (none struct{}, err error) {
			return none, in.Measure(ctx, &task, func(_ *Catalogue, a arena.Arena) (arena.Arena, error) { return a, nil })
		},
	}
}

// Measure measures in the arena that the survey has opened, and writes the run directory.
// adapt adds the plan's further contenders to the catalogue, and returns the arena in which
// they come up.
func (in *Inside) Measure(ctx context.Context, m *Measurement, adapt func(*Catalogue, arena.Arena) (arena.Arena, error)) error {
	catalogue, err := LoadCatalogue(in.Venue.Own()...)
	if err != nil {
		return err
	}
	opened := in.opened
	a, err := adapt(catalogue, opened.Arena)
	if err != nil {
		return err
	}
	bar := console.NewProgress(os.Stderr, 0)
	defer bar.Done()
	var end *stopping // once the plan is known
	var plan *result.Plan
	runner := &bench.Runner{
		Arena: a, Catalogue: catalogue.Contender, Exe: opened.Exe, Kernel: opened.Kernel, LineRate: opened.LineRate, MTU: opened.MTU, Log: console.Logger(console.Lines(bar.Message)),
		Progress: func(p bench.Progress) {
			if p.Total == 0 {
				bar.Message(p.Text)
				return
			}
			if end != nil {
				p = end.expect(p, plan)
			}
			bar.Step(p.Done, p.Total, p.Text, p.Remaining)
		},
	}
	kept := false
	if m.Keep {
		runner.Keep = func(ctx context.Context, endpoints []string) {
			kept = true
			bar.Message(fmt.Sprintf("kept up until Ctrl-C; look inside with: cnibench enter %s", strings.Join(endpoints, "|")))
			<-ctx.Done()
		}
	}
	store, sealed, run, err := m.openStore(ctx, runner)
	if ctx.Err() != nil && err != nil {
		return fmt.Errorf("interrupted %w", errNothingSealed)
	}
	if err != nil {
		return err
	}
	defer store.Close()
	plan = &run.Plan
	runner.Store = store
	sofar := &interim{Store: store}
	view := &preview{Bar: bar, Interim: sofar, Plan: plan, Baseline: run.Baseline}
	runner.Progress = view.Wrap(runner.Progress)
	end = newStopping(m.End, plan, sofar.Report, bar.Message)
	runner.Search, runner.Enough = end.searches, end.enough
	if err := m.withNextStep(ctx, runner.Run(ctx, plan, sealed), kept, in.Venue.Traits().CleanUp); err != nil {
		return err
	}
	return store.End(time.Now())
}

// withNextStep adds to the runner's error what the user can do. kept says that --keep
// held a complete run until the user interrupted it, cleanUp is the command that removes what
// a run has left.
func (m *Measurement) withNextStep(ctx context.Context, err error, kept bool, cleanUp string) error {
	var left error
	if errors.Is(err, bench.ErrLeft) {
		left = fmt.Errorf("remove what may be left with `%s`", cleanUp)
	}
	if ctx.Err() != nil && !kept {
		if left == nil {
			err = nil // only that it was interrupted
		}
		err = errors.Join(fmt.Errorf("interrupted; %w", m.resumeError()), err, left)
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

// resumeError returns the end of an error's text: what of the run is kept, and how to resume it.
func (m *Measurement) resumeError() error {
	return fmt.Errorf("what is sealed is a valid run: go on with `%s`", m.Resumption)
}

// readFingerprint returns the environment of the first contender's first node, with the
// keys that the arena adds.
func readFingerprint(ctx context.Context, runner *bench.Runner, plan *result.Plan) (result.Environment, error) {
	env, err := runner.Fingerprint(ctx, plan.Contenders[0])
	if err != nil {
		return nil, err
	}
	maps.Copy(env, runner.Arena.Environment())
	env[analysis.CPUClockKey] = analysis.IdleClock
	return env, nil
}

// openStore makes the run directory of a new run, or opens that of a resumed one.
// It returns the store, the keys of the samples that are sealed, and the run.
func (m *Measurement) openStore(ctx context.Context, runner *bench.Runner) (*result.Store, map[result.Key]bool, *result.Run, error) {
	if m.Resume {
		store, rec, err := result.Resume(m.Dir)
		if err != nil {
			return nil, nil, nil, err
		}
		if err := m.checkSame(ctx, runner, &rec.Run); err != nil {
			return nil, nil, nil, errors.Join(err, store.Close())
		}
		store.SetTool(m.Tool, rec.Run.Tool)
		return store, rec.SealedKeys(), &rec.Run, nil
	}
	run, a := &m.Record, runner.Arena
	run.Started = time.Now().UTC()
	for i := range run.Unsupported {
		u := &run.Unsupported[i]
		u.Reason, u.Remedy = a.Anonymous(u.Reason), a.Anonymous(u.Remedy)
	}
	env, err := readFingerprint(ctx, runner, &run.Plan)
	if err != nil {
		return nil, nil, nil, err
	}
	maps.Copy(env, run.Environment)
	run.Environment = env
	if checks := run.Plan.Settings["check"]; checks != "" {
		say := func(id string) { runner.Progress(bench.Progress{Text: "check: " + id}) }
		found, err := checkPlan(ctx, runner, checks, &run.Plan, say)
		if err != nil {
			return nil, nil, nil, err
		}
		for key, value := range found {
			run.Environment[key] = a.Anonymous(value)
		}
	}
	// A folder that can't be written is an error before the search for rates.
	if err := os.MkdirAll(m.Dir, 0o755); err != nil {
		return nil, nil, nil, err
	}
	if err := runner.Calibrate(ctx, run, run.Plan.Contenders[0]); err != nil {
		_ = os.Remove(m.Dir) // empty, unless somebody else uses it
		return nil, nil, nil, err
	}
	store, err := result.Create(m.Dir, run)
	if errors.Is(err, result.ErrExists) {
		return nil, nil, nil, exit.With(exit.WrongUsage, err)
	}
	return store, nil, run, err
}

// checkSame refuses to resume a run on another machine: sealed samples are never repeated,
// so new samples must be comparable with them.
func (m *Measurement) checkSame(ctx context.Context, runner *bench.Runner, run *result.Run) error {
	env, err := readFingerprint(ctx, runner, &run.Plan)
	if err != nil {
		return err
	}
	if err := fingerprint.SameMachine(run.Environment, env); err != nil {
		return err
	}
	if run.Environment[analysis.CPUClockKey] != env[analysis.CPUClockKey] {
		return exit.Usage("the run's CPU figures are sums of the kernel's ticks, and this version goes by its idle time; go on with cnibench %s, or begin a new run", run.Tool)
	}
	if tool := m.Tool; tool != run.Tool {
		runner.Log.Warn("the run was begun by another version of cnibench", "then", run.Tool.Version, "now", tool.Version)
	}
	return nil
}

// checkPlan runs the checks of the list once on every contender of the plan,
// and returns what they found as keys of the run's environment.
func checkPlan(ctx context.Context, of *bench.Runner, list string, plan *result.Plan, say func(string)) (result.Environment, error) {
	checks, err := check.ParseNames(list)
	if err != nil {
		return nil, err
	}
	runner := &check.Runner{Arena: of.Arena, Exe: of.Exe, Progress: say}
	var all []check.Result
	for _, entry := range plan.Contenders {
		c, err := of.Catalogue(entry.ID)
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
