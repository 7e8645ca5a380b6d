package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/arena/microvm"
	"github.com/cnibench/cnibench/internal/console"
	"github.com/cnibench/cnibench/internal/exit"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/vm"
)

// A run has parts: what the running kernel can, and, in PartDir of its
// directory, a whole run of what only another kernel can. docs/adr/0002 says
// why. The outer process, before the lab's container, leads both.

// PartDir is the guest's run directory below the run's own.
const PartDir = "microvm"

// partsEnv tells the process in the lab's container that its caller goes on
// with a guest, so that contenders may be left to that.
const partsEnv = "CNIBENCH_PARTS"

// exitAllInGuest is how the process in the lab's container says that every
// contender which was asked for needs another kernel; nothing was written.
const exitAllInGuest = 75

// errKeptGuest refuses --keep for a guest.
var errKeptGuest = exit.Usage("--keep: the lab of a guest can't be entered from here; leave it out, or keep a contender of this kernel: --arena lab")

// lead runs the command line in the arena that it asks for, outside of the
// lab's container.
func (j *Job) lead(ctx context.Context) error {
	f := j.flags
	if microvm.Inside() { // a guest's own run: the kernel is this one
		return j.contain(ctx)
	}
	whole := f.Arena == MicroVM || j.resumed != nil && j.resumed.Arena == MicroVM
	if whole && f.Keep {
		return errKeptGuest
	}
	if !whole && (f.Arena == "lab" || f.Keep) {
		return j.contain(ctx)
	}
	if j.resumed == nil || whole || len(leftToGuest(j.resumed)) > 0 {
		if err := j.guestFits(ctx); err != nil {
			return err
		}
	}
	if whole {
		return j.inGuest(ctx, nil)
	}
	// The container's process must write where this one reads.
	if j.resumed == nil && !f.Given["out"] {
		os.Args = append(os.Args, "--out="+f.Out)
	}
	if err := os.Setenv(partsEnv, "1"); err != nil {
		return err
	}
	err := j.contain(ctx)
	var coded *exit.Error
	if errors.As(err, &coded) && coded.Code == exitAllInGuest {
		return j.inGuest(ctx, nil)
	}
	if err != nil {
		return err
	}
	return j.part(ctx)
}

// guestFits finds what keeps the guest from booting that may follow, before
// anything is measured.
func (j *Job) guestFits(ctx context.Context) error {
	g := &j.flags.Guest
	if j.resumed != nil {
		for _, dir := range []string{j.flags.Out, filepath.Join(j.flags.Out, PartDir)} {
			if err := owned(dir); err != nil {
				return err
			}
		}
	}
	if vm.IsPath(g.Kernel) || g.Modules != "" { // a version may have to be fetched, which waits for the need
		_, err := vm.Find(ctx, g.Kernel, g.Modules, console.Logger(os.Stderr))
		return microvm.Error(err)
	}
	return nil
}

// part runs, after the native rounds, what they left to another kernel.
func (j *Job) part(ctx context.Context) error {
	f := j.flags
	run, err := result.Load(f.Out)
	if err != nil {
		return err
	}
	left := leftToGuest(&run.Run)
	if len(left) == 0 {
		return nil // and the container's process has reported
	}
	log := console.Logger(os.Stderr)
	if err := f.sameGuest(filepath.Join(f.Out, PartDir)); err != nil {
		return errors.Join(err, j.report(f.Out, true))
	}
	config, err := f.guestConfig(ctx, log)
	if err != nil {
		if vmUnsupported(err) != nil && !slices.ContainsFunc(left, j.named) {
			// Auto measures what it can; the table says what is missing and why.
			log.Warn("what needs another kernel is left out", "contenders", len(left), "why", err)
			err = nil
		}
		return errors.Join(err, j.report(f.Out, true))
	}
	log.Info("the rest needs another kernel and runs in a guest", "kernel", config.Kernel.Release, "contenders", len(left))
	runErr := j.inGuest(ctx, &config)
	part, err := LoadPart(f.Out)
	if err == nil && part != nil && (empty(part) || exit.Code(runErr) == exit.Gate) {
		runErr = nil // the report says so, of all parts
	}
	runErr = errors.Join(runErr, err)
	return errors.Join(runErr, j.missed(part), j.report(f.Out, runErr == nil))
}

// named says that the contender was asked for by name.
func (j *Job) named(id string) bool { return slices.Contains(j.Wanted, id) }

// missed is the error of contenders that were asked for by name and that the
// guest can't run either.
func (j *Job) missed(part *result.Record) error {
	if part == nil {
		return nil
	}
	var why []error
	for _, u := range part.Run.Unsupported {
		if u.Step == "" && j.named(u.Contender) {
			why = append(why, fmt.Errorf("contender %s: %s; %s", u.Contender, u.Reason, u.Remedy))
		}
	}
	if why == nil {
		return nil
	}
	return exit.With(exit.Unsupported, errors.Join(why...))
}

// empty says that the part has nothing to measure: its kernel runs none of
// the contenders that were left to it.
func empty(part *result.Record) bool { return len(part.Run.Plan.Contenders) == 0 }

// nothing writes such a part, for the reasons in it.
func (j *Job) nothing(a arena.Arena, run *result.Run) error {
	run.Environment = result.Environment{"kernel.release": lab.KernelRelease()}
	maps.Copy(run.Environment, a.Environment())
	store, err := result.Create(j.flags.Out, run)
	if err != nil {
		return err
	}
	why := fmt.Errorf("kernel %s runs none of %s either", lab.KernelRelease(), strings.Join(j.only, ", "))
	return errors.Join(exit.With(exit.Unsupported, why), store.Close())
}

// leftToGuest are the contenders that another kernel may run.
func leftToGuest(run *result.Run) []string {
	var ids []string
	for _, u := range run.Unsupported {
		if u.OtherKernel && u.Step == "" && !slices.Contains(ids, u.Contender) {
			ids = append(ids, u.Contender)
		}
	}
	return ids
}

// inGuest runs this same program in a guest. With a configuration it runs the
// part of the run, else the whole command line.
func (j *Job) inGuest(ctx context.Context, config *vm.Config) error {
	f := j.flags
	dir, args := f.Out, append(slices.Clone(os.Args[1:]), "--arena=lab")
	if config == nil {
		if j.resumed == nil {
			args = append(args, "--out="+dir)
		}
		if err := f.sameGuest(dir); err != nil {
			return err
		}
		found, err := f.guestConfig(ctx, console.Logger(os.Stderr))
		if err != nil {
			return err
		}
		config = &found
		config.Stdout = f.Stdout
	} else {
		dir = filepath.Join(f.Out, PartDir)
		args = append([]string{"run", "--arena=lab", "--part-of=" + f.Out}, f.Guest.Args()...)
		switch begun, err := LoadPart(f.Out); {
		case err != nil:
			return err
		case begun != nil && empty(begun): // of a kernel that could not; this one may
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		case begun != nil:
			args = []string{"run", "--arena=lab", "--resume=" + dir}
		}
		config.Stdout = io.Discard // the report of both follows
	}
	made, err := makeDir(dir)
	if err != nil {
		return err
	}
	unlock, err := result.Lock(dir) // which the guest's own lock is not for this machine
	if err != nil {
		return err
	}
	code, err := microvm.Run(ctx, config, dir, args, lab.EndSignals())
	err = errors.Join(err, unlock())
	written := !made || os.Remove(dir) != nil
	goOn := f.sealed(f.Out)
	switch {
	case err != nil && written:
		return microvm.Error(fmt.Errorf("%w\n%w", err, goOn))
	case err != nil:
		return microvm.Error(err)
	case code > 128 && written: // by a signal
		return fmt.Errorf("interrupted; %w", goOn)
	case code > 128:
		return fmt.Errorf("interrupted %w", errNothingSealed)
	case code == exit.Failed && written: // whose own words don't know of the whole run
		return fmt.Errorf("the run in the guest failed; %w", goOn)
	case code != exit.Done:
		return exit.With(code, fmt.Errorf("the run in the guest ended with exit code %d", code))
	}
	return nil
}

func makeDir(dir string) (made bool, err error) {
	if _, err := os.Stat(dir); err == nil {
		return false, nil
	}
	return true, os.MkdirAll(dir, 0o755)
}

// vmUnsupported is the *vm.Unsupported in err's chain, or nil.
func vmUnsupported(err error) *vm.Unsupported {
	var u *vm.Unsupported
	errors.As(err, &u)
	return u
}

// partPlan makes the plan of a part: that of the whole, with the contenders
// which it left. Rates that the whole has found for its own kernel are found
// anew.
func (j *Job) partPlan() error {
	f := j.flags
	rec, err := result.Load(f.PartOf)
	if err != nil {
		return err
	}
	run := &rec.Run
	if err := f.Adopt(run.Plan.Settings); err != nil {
		return err
	}
	// The guest has CPUs of its own, and nobody's own contender needs it.
	f.CPUs, f.CNIConf, f.cniText = "", "", ""
	f.Baseline, f.Out = run.Baseline, filepath.Join(f.PartOf, PartDir)
	options, err := f.labOptions()
	if err != nil {
		return err
	}
	j.place = NewLab(options)
	if j.Catalogue, err = LoadCatalogue(); err != nil {
		return err
	}
	if j.only = leftToGuest(run); len(j.only) == 0 {
		return exit.Usage("--part-of %s: the run left nothing to another kernel", f.PartOf)
	}
	j.Plan = run.Plan
	j.Plan.Contenders, j.Plan.Gaps, j.Plan.Capacity, j.Plan.Settings = nil, nil, nil, f.Settings()
	if len(run.Plan.Capacity) > 0 {
		s, err := j.Catalogue.Suite(run.Plan.Suite)
		if err != nil {
			return err
		}
		asked, err := s.Expand("auto", f.Services)
		if err != nil {
			return err
		}
		j.Plan.Steps = slices.Clone(run.Plan.Steps)
		for i, step := range j.Plan.Steps {
			if at := slices.IndexFunc(asked, func(s result.Step) bool { return s.ID == step.ID }); at >= 0 {
				j.Plan.Steps[i] = asked[at]
			}
		}
	}
	return j.programs(j.Plan.Steps)
}

// leaves says that the contender is left to a guest that the caller boots.
func (j *Job) leaves(u *arena.Unsupported) bool {
	return u.OtherKernel && j.flags.Arena == "auto" && os.Getenv(partsEnv) == "1"
}

// toGuest says what is to be told of a contender that needs another kernel.
func toGuest(u *arena.Unsupported) *arena.Unsupported {
	if !u.OtherKernel || microvm.Inside() {
		return u
	}
	told := *u
	told.Remedy += ", or run it in a guest: --arena microvm"
	return &told
}
