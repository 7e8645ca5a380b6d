package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/arena/guest"
	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text/console"
)

// PartDir is the folder, below the run directory, of the run that a guest measured.
const PartDir = "microvm"

// errKeptGuest refuses --keep for a guest.
var errKeptGuest = exit.Usage("--keep: the lab of a guest can't be entered from here; leave it out, or keep a contender of this kernel: --arena lab")

// Lead implements Place. The process that the user starts leads the run: it
// starts this program in the lab's container, in a guest, or in both one after
// the other, and hands each the Request that it carries out (handover.go).
// docs/adr/0002 says why a run has such parts.
func (p *LabPlace) Lead(ctx context.Context, j *Job) error {
	f := j.request
	switch {
	case lab.Contained():
		return p.Inside(ctx, j.Run)
	case guest.Inside(): // the guest's kernel is the one that was asked for
		return j.inLab(ctx, j.asked)
	case f.Arena == MicroVM || j.resumed != nil && j.resumed.Arena == MicroVM:
		return j.inGuestOnly(ctx)
	case f.Arena == Lab || f.Keep:
		return j.inLab(ctx, j.asked)
	}
	return j.inLabThenGuest(ctx)
}

// inLab carries the request out in the lab's container. If the lab is killed, the
// error says what is sealed and how to go on, as after an interruption.
func (j *Job) inLab(ctx context.Context, request Request) error {
	request.Out = j.request.Out
	args, err := request.handOver()
	if err != nil {
		return err
	}
	err = contain(ctx, args)
	var killed *lab.Killed
	if !errors.As(err, &killed) {
		return err
	}
	if _, missing := os.Stat(filepath.Join(j.request.Out, "run.json")); missing != nil {
		return fmt.Errorf("%w; %w", err, errNothingSealed)
	}
	return fmt.Errorf("%w; %w", err, j.request.sealed(j.request.Out))
}

// inGuestOnly carries the whole request out in a guest.
func (j *Job) inGuestOnly(ctx context.Context) error {
	f := j.request
	if f.Keep {
		return errKeptGuest
	}
	if err := j.checkGuest(ctx); err != nil {
		return err
	}
	if err := f.adoptGuest(f.Out); err != nil {
		return err
	}
	config, err := f.guestConfig(ctx, console.Logger(os.Stderr))
	if err != nil {
		return err
	}
	config.Stdout = f.Stdout
	request := j.asked
	request.Arena, request.Out = Lab, f.Out
	return j.inGuest(ctx, &config, f.Out, request)
}

// inLabThenGuest measures in the lab what this kernel can run, then the rest in a
// guest, and reports both. If the lab could run none of the contenders, the whole
// request is carried out in the guest.
func (j *Job) inLabThenGuest(ctx context.Context) error {
	f, begin := j.request, time.Now()
	if j.resumed == nil || len(leftToGuest(j.resumed)) > 0 {
		if err := j.checkGuest(ctx); err != nil {
			return err
		}
	}
	_, missing := os.Stat(f.Out)
	request := j.asked
	request.GuestFollows = true
	if err := j.inLab(ctx, request); err != nil {
		if j.resumed != nil || exit.Code(err) != exit.Unsupported || !measuresNothing(f.Out) {
			return err
		}
		if err := discard(f.Out, missing != nil); err != nil {
			return err
		}
		return j.inGuestOnly(ctx)
	}
	return j.leftInGuest(ctx, begin)
}

// leftInGuest measures in a guest the contenders that the native part of the run left to
// another kernel, and reports both parts. The native part began at begin.
func (j *Job) leftInGuest(ctx context.Context, begin time.Time) error {
	f := j.request
	native, err := result.Load(f.Out)
	if err != nil {
		return err
	}
	left := leftToGuest(&native.Run)
	if len(left) == 0 {
		return nil // the process in the lab has reported
	}
	log := console.Logger(os.Stderr)
	if err := f.adoptGuest(filepath.Join(f.Out, PartDir)); err != nil {
		return errors.Join(err, j.report(f.Out, true))
	}
	config, err := f.guestConfig(ctx, log)
	if err != nil {
		var unsupported *vm.Unsupported
		if errors.As(err, &unsupported) && !slices.ContainsFunc(left, j.named) {
			// Nobody asked for these contenders: the table says what they lack.
			log.Warn("what needs another kernel is left out", "contenders", len(left), "why", err)
			err = nil
		}
		return errors.Join(err, j.report(f.Out, true))
	}
	log.Info("the rest needs another kernel and runs in a guest", "kernel", config.Kernel.Release, "contenders", len(left))
	runErr := j.partInGuest(ctx, &config, begin)
	part, err := LoadPart(f.Out)
	if err == nil && part != nil && (empty(part) || exit.Code(runErr) == exit.Gate) {
		runErr = nil // the report of both parts says so
	}
	runErr = errors.Join(runErr, err)
	return errors.Join(runErr, j.missed(part), j.report(f.Out, runErr == nil))
}

// named reports whether the user asked for the contender by name.
func (j *Job) named(id string) bool { return slices.Contains(j.Wanted, id) }

// missed returns the error of the contenders that the user asked for by name and that
// the guest's kernel can't run either; nil if part is nil.
func (j *Job) missed(part *result.Record) error {
	if part == nil {
		return nil
	}
	var reasons []error
	for _, u := range part.Run.Unsupported {
		if u.Step == "" && j.named(u.Contender) {
			reasons = append(reasons, fmt.Errorf("contender %s: %s; %s", u.Contender, u.Reason, u.Remedy))
		}
	}
	if reasons == nil {
		return nil
	}
	return exit.With(exit.Unsupported, errors.Join(reasons...))
}

// empty reports whether a run has no contenders: its kernel supports none, for the
// reasons in the run's Unsupported.
func empty(rec *result.Record) bool { return len(rec.Run.Plan.Contenders) == 0 }

// measuresNothing reports whether dir holds a run without contenders.
func measuresNothing(dir string) bool {
	rec, err := result.Load(dir)
	return err == nil && empty(rec)
}

// discard removes the files of the run in dir, and dir too if folder is set.
func discard(dir string, folder bool) error {
	if folder {
		return os.RemoveAll(dir)
	}
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	return err
}

// leftToGuest returns the ids of the contenders that another kernel may run.
func leftToGuest(run *result.Run) []string {
	var ids []string
	for _, u := range run.Unsupported {
		if u.OtherKernel && u.Step == "" && !slices.Contains(ids, u.Contender) {
			ids = append(ids, u.Contender)
		}
	}
	return ids
}
