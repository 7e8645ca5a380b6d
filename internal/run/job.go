package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/check"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/selftest"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/text/console"
)

// Job is a request with what follows from it, as the user's process prepares it.
type Job struct {
	Measurement
	Venue     Venue
	Catalogue *Catalogue
	SelfTest  *selftest.Kept // of this machine, kernel and version; nil: none
	// Copies of the baseline are measured beside it. To the arena they are the baseline.
	Copies []*contender.Contender
	// Single says that no two contenders may be up at the same time.
	Single bool
	// Adapt, if set, changes the plan by what only the worker knows: its guest, nil outside of guests.
	Adapt func(*vm.Facts)

	request    *Request
	candidates []*contender.Contender // of a new run: those that run if the arena can run them
	named      bool                   // the user named the candidates
}

// Measurement is a run as it crosses to the worker that measures. The worker decides nothing:
// it carries the plan out, with the rates that it finds where the plan has shares of a capacity.
type Measurement struct {
	Dir        string      // the run directory
	Resume     bool        // go on with the run that is there
	Tool       result.Tool // this program
	Record     result.Run  // of a new run, without the environment that the worker reads
	End        End
	Keep       bool   // keep the last contender up until the user interrupts
	Resumption string // the command that resumes this run
}

// Prepare checks the request and turns it into a job. It makes nothing.
func (f *Request) Prepare() (*Job, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	j := &Job{request: f}
	if f.Resume != "" {
		if err := j.loadResumed(); err != nil {
			return nil, err
		}
	}
	if err := f.checkPrivileged(); err != nil {
		return nil, err
	}
	var err error
	if j.Venue, err = f.Venue(); err != nil {
		return nil, err
	}
	if j.Venue.Traits().ThisMachine {
		if err := refuseHidden(f.Out); err != nil {
			return nil, err
		}
	}
	if j.Catalogue, err = LoadCatalogue(j.Venue.Own()...); err != nil {
		return nil, err
	}
	j.SelfTest = f.keptSelfTest()
	if !j.Resume {
		if err := j.newPlan(); err != nil {
			return nil, err
		}
	}
	j.Dir, j.Tool, j.Keep, j.End, j.Resumption = f.Out, f.Tool, f.Keep, f.end(&j.Record.Plan), f.resumption("run")
	return j, equip(j.Venue, j.Record.Plan.Steps)
}

// Begin starts a worker in the job's venue, which opens the arena, and completes the plan by
// what the arena says.
func (j *Job) Begin(ctx context.Context) (*Worker, error) {
	w, err := j.Venue.start(ctx)
	if err != nil {
		return nil, err
	}
	if j.Adapt != nil {
		j.Adapt(w.Guest)
	}
	s, err := SurveyVerb().by(w, j.question())
	if err == nil {
		err = j.complete(s, w.Guest)
	}
	if err != nil {
		return nil, errors.Join(err, w.end())
	}
	return w, nil
}

// loadResumed reads the run that is to be resumed and applies what its plan remembers.
func (j *Job) loadResumed() error {
	f := j.request
	if err := checkOwner(f.Resume); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(f.Resume, "run.json")); errors.Is(err, fs.ErrNotExist) {
		if fresh, err := result.IsFresh(f.Resume); err == nil && fresh {
			return exit.Usage("%s: there is nothing to resume: its run was ended before its first round; start it again with --out %s, which takes the folder as new", f.Resume, f.Resume)
		}
		return exit.Usage("%s: there is nothing to resume: a run writes run.json before its first round, and this is no folder of a run", f.Resume)
	}
	rec, err := result.Load(f.Resume)
	if err != nil {
		return err
	}
	if len(rec.Run.Plan.Contenders) == 0 {
		return exit.Usage("%s measures no contender, for the reasons that `cnibench report` shows; begin a new run", f.Resume)
	}
	if f.Arena, err = arenaOf(f.Arena, rec.Run.Arena, f.Given["arena"]); err != nil {
		return err
	}
	f.Out, j.Resume, j.Record = f.Resume, true, rec.Run
	if err := f.refuseChanges(); err != nil {
		return err
	}
	if err := f.ApplyRecorded(j.Record.Plan.Settings); err != nil {
		return err
	}
	f.bootSameKernel(&j.Record)
	return nil
}

// Lead carries the job out in its venue and reports it to out. complete says that nothing
// interrupted it.
func (j *Job) Lead(ctx context.Context, out io.Writer) error {
	if err := j.checkTrust(); err != nil {
		return err
	}
	if j.request.Kind().Cluster {
		logInfo("%s", j.announcement())
	}
	for _, why := range j.request.uncapped {
		console.Logger(os.Stderr).Warn("step left out: it can't be held to --max-rate", "step", why)
	}
	// The process that measures ends by the first signal. Later ones must not end this one
	// while it reports what was measured.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, host.EndSignals()...)
	defer signal.Stop(signals)
	w, err := j.Begin(ctx)
	if err == nil {
		_, err = MeasureVerb().Last(w, j.Measurement)
	}
	_, missing := os.Stat(filepath.Join(j.Dir, "run.json"))
	switch lost := errors.As(err, new(lostError)); {
	case missing != nil && lost:
		return fmt.Errorf("%w; %w", err, errNothingSealed)
	case missing != nil:
		return err
	case lost:
		return exit.With(exit.Code(err), fmt.Errorf("%w; %w", err, j.resumeError()))
	}
	return errors.Join(err, WriteReport(j.Dir, err == nil, out))
}

// WriteReport prints the table and writes the page of the run in dir. complete says that
// nothing interrupted the run.
func WriteReport(dir string, complete bool, out io.Writer) error {
	rec, err := result.Load(dir)
	if err != nil {
		return err
	}
	r := report.Assemble(dir, rec, analysis.Options{})
	err = result.WriteFile(dir, "report.html", func(w io.Writer) error {
		return report.Write(w, string(report.HTML), r, report.Options{})
	})
	if werr := report.Write(out, string(report.Text), r, report.Options{Color: console.UseColor(out), Width: console.Width(out)}); werr != nil {
		return errors.Join(err, werr)
	}
	fmt.Fprintf(out, "\nReport: %s\nIn a browser: cnibench explore %s\n", filepath.Join(dir, "report.html"), text.ShellWord(dir))
	if err != nil || !complete {
		return err
	}
	if err := report.NoneValid(rec); err != nil {
		return exit.With(exit.Gate, err)
	}
	return nil
}

// checkPrivileged refuses privileged pods in a run that needs none.
func (f *Request) checkPrivileged() error {
	if !f.Cluster.Privileged || f.Resume != "" || f.ForSelfTest || f.OnNodes {
		return nil
	}
	if f.Checks != "" {
		checks, err := check.ParseNames(f.Checks)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(checks, func(c check.Check) bool { return c.Info().Name == "encryption" }) {
			return nil
		}
	}
	return exit.Usage("--privileged: measurements need no privileged pods, only the check of encryption does; leave it out, or add --check encryption")
}

// refuseHidden refuses a folder that the lab hides behind an empty file system of its own.
func refuseHidden(dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if lab.HidesPath(abs) {
		return exit.Usage("%s: the lab has an empty %s of its own; choose a run directory elsewhere", dir, lab.RunDir)
	}
	return nil
}
