package run

import (
	"context"
	"os"
	"slices"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/check"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text/console"
)

// Job is a Request with the place, the catalogue and the plan that follow from it.
type Job struct {
	request   *Request
	asked     Request // the request before Prepare changed it, for the process that carries it out
	Place     Place
	Catalogue *Catalogue
	Wanted    []string    // the contenders asked for by name; nil: all that are supported
	only      []string    // the only contenders to consider; nil: all
	resumed   *result.Run // nil for a new run
	Plan      result.Plan // of a new run without contenders, since only the arena knows which can run
	// Wrap, if set, returns the arena that is measured in place of the one that
	// was opened.
	Wrap func(arena.Arena) (arena.Arena, error)
}

// Prepare turns the request into a job. It makes nothing.
func (f *Request) Prepare() (*Job, error) {
	f.findSelfTest()
	j := &Job{request: f, asked: *f}
	kind, err := FindArena(f.Arena)
	if err != nil {
		return nil, err
	}
	if f.Resume != "" {
		if err := checkOwner(f.Resume); err != nil {
			return nil, err
		}
		rec, err := result.Load(f.Resume)
		if err != nil {
			return nil, err
		}
		if empty(rec) {
			return nil, exit.Usage("%s measures no contender, for the reasons that `cnibench report` shows; begin a new run", f.Resume)
		}
		if kind, err = kind.resuming(rec.Run.Arena, f.Given["arena"]); err != nil {
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
	if err := f.checkPrivileged(); err != nil {
		return nil, err
	}
	if f.PartOf != "" {
		return j, j.partPlan()
	}
	if j.resumed != nil {
		if err := f.refuseChanges(kind.fixed); err != nil {
			return nil, err
		}
		if err := f.Adopt(j.Plan.Settings); err != nil {
			return nil, err
		}
	}
	if j.Place, err = kind.place(f); err != nil {
		return nil, err
	}
	if j.Catalogue, err = LoadCatalogue(j.Place.Own()...); err != nil {
		return nil, err
	}
	if j.resumed != nil {
		return j, j.programs(j.Plan.Steps)
	}
	return j, j.newPlan()
}

// Lead carries the job out in its place.
func (j *Job) Lead(ctx context.Context) error {
	if err := j.checkTrust(); err != nil {
		return err
	}
	if !j.request.accepted { // else the process that leads the run has printed these
		for _, why := range j.request.uncapped {
			console.Logger(os.Stderr).Warn("step left out: it can't be held to --max-rate", "step", why)
		}
	}
	return j.Place.Lead(ctx, j)
}

// checkPrivileged refuses privileged pods in a run that needs none.
func (f *Request) checkPrivileged() error {
	if !f.Cluster.Privileged || f.Resume != "" || f.isSelfTest || f.OnNodes {
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
