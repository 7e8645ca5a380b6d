package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/arena/microvm"
	"github.com/cnibench/cnibench/internal/console"
	"github.com/cnibench/cnibench/internal/exit"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/vm"
)

// Guest is a guest as flags choose it.
type Guest = microvm.Guest

// DefaultMemory is the memory of a run's guest.
const DefaultMemory = microvm.DefaultMemory

// InGuest runs a command in the guest. The error carries the command's exit code if
// that is not exit.Done.
func InGuest(ctx context.Context, guest *Guest, argv []string, log *slog.Logger) error {
	code, err := microvm.Command(ctx, guest, argv, log, lab.EndSignals())
	if err == nil && code != exit.Done {
		return exit.With(code, nil)
	}
	return err
}

// SameInGuest starts this same command line in a guest, which may write into the run
// directory where there is one; more is added to the command line.
func (f *Request) SameInGuest(ctx context.Context, more ...string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	guest, unlock := f.Guest, func() error { return nil }
	if f.Out != "" {
		made, err := makeDir(f.Out)
		if err != nil {
			return err
		}
		if made {
			defer os.Remove(f.Out) // fails once the guest has written into it
		}
		if unlock, err = result.Lock(f.Out); err != nil { // 9p does not pass the guest's own lock on
			return err
		}
		guest.Share = []string{f.Out}
	}
	args := os.Args[1:]
	flags := slices.Index(args, "--") // what follows are no flags
	if flags < 0 {
		flags = len(args)
	}
	err = InGuest(ctx, &guest, slices.Concat([]string{exe}, args[:flags], more, args[flags:]), console.Logger(os.Stderr))
	return errors.Join(err, unlock())
}

// guestFits finds, before anything is measured, what would keep the guest from
// booting or from going on with the run.
func (j *Job) guestFits(ctx context.Context) error {
	guest := &j.request.Guest
	if j.resumed != nil {
		for _, dir := range []string{j.request.Out, filepath.Join(j.request.Out, PartDir)} {
			if err := owned(dir); err != nil {
				return err
			}
		}
	}
	if vm.IsPath(guest.Kernel) || guest.Modules != "" { // a version is fetched once a guest is needed
		_, err := vm.Find(ctx, guest.Kernel, guest.Modules, console.Logger(os.Stderr))
		return microvm.Error(err)
	}
	return nil
}

// guestConfig is the guest that the request chooses.
func (f *Request) guestConfig(ctx context.Context, log *slog.Logger) (vm.Config, error) {
	if err := vm.Available(); err != nil {
		return vm.Config{}, microvm.Error(err)
	}
	return f.Guest.Config(ctx, log)
}

// sameGuest chooses the guest that began the run in dir, as far as the command
// line chooses none.
func (f *Request) sameGuest(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "run.json")); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	rec, err := result.Load(dir)
	if err != nil || rec.Run.Arena != MicroVM || empty(rec) {
		return err
	}
	recorded := maps.Clone(rec.Run.Plan.Settings)
	maps.DeleteFunc(recorded, func(flag, _ string) bool { return !slices.Contains(microvm.SettingFlags, flag) })
	if err := f.Adopt(recorded); err != nil {
		return err
	}
	if f.Given["kernel"] || vm.IsPath(f.Guest.Kernel) {
		return nil
	}
	// A version has many releases; the run goes on under its own.
	for _, k := range vm.Kernels() {
		if k.Release == rec.Run.Environment["kernel.release"] {
			f.Guest.Kernel, f.Guest.Modules = k.Image, k.Modules
		}
	}
	return nil
}

// owned refuses to go on with another user's run: its plan names the kernel of a
// guest, the image of a cluster's pods, and the CNI configuration that root runs.
// Inside a guest nothing is refused: the process that booted it has asked.
func owned(dir string) error {
	if microvm.Inside() {
		return nil
	}
	for _, name := range []string{dir, filepath.Join(dir, "run.json")} {
		info, err := os.Stat(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Geteuid() {
			return exit.Usage("%s belongs to user %d: what its plan names is not run for another user; resume it as user %d, or begin a new run", name, s.Uid, s.Uid)
		}
	}
	return nil
}

// partInGuest measures in a guest what the native part left, or goes on with that. The
// time that the user gave both parts began at from.
func (j *Job) partInGuest(ctx context.Context, config *vm.Config, from time.Time) error {
	dir := filepath.Join(j.request.Out, PartDir)
	begun, err := LoadPart(j.request.Out)
	if err != nil {
		return err
	}
	request := j.asked
	request.Arena = Lab
	if begun != nil && !empty(begun) {
		request.Resume, request.Given = dir, map[string]bool{}
	} else {
		if begun != nil { // by a kernel that could run none; this one may
			if err := discard(dir, true); err != nil {
				return err
			}
		}
		request.PartOf, request.Resume, request.Guest, request.Given = j.request.Out, "", j.request.Guest, map[string]bool{}
		for flag := range request.Guest.Settings() {
			request.Given[flag] = true
		}
	}
	if j.request.Given["max-time"] && j.request.MaxTime > 0 {
		request.MaxTime, request.Given["max-time"] = max(time.Second, j.request.MaxTime-time.Since(from)), true
	}
	config.Stdout = io.Discard // the report of both parts follows
	return j.inGuest(ctx, config, dir, request)
}

// inGuest carries the request out in a guest, which writes the run in dir.
func (j *Job) inGuest(ctx context.Context, config *vm.Config, dir string, request Request) error {
	args, err := request.handOver()
	if err != nil {
		return err
	}
	made, err := makeDir(dir)
	if err != nil {
		return err
	}
	unlock, err := result.Lock(dir) // 9p does not pass the guest's own lock on
	if err != nil {
		return err
	}
	code, err := microvm.Run(ctx, config, dir, args, lab.EndSignals())
	err = errors.Join(err, unlock())
	written := !made || os.Remove(dir) != nil
	goOn := j.request.sealed(j.request.Out)
	switch {
	case err != nil && written:
		return microvm.Error(fmt.Errorf("%w\n%w", err, goOn))
	case err != nil:
		return microvm.Error(err)
	case code > 128 && written: // by a signal
		return fmt.Errorf("interrupted; %w", goOn)
	case code > 128:
		return fmt.Errorf("interrupted %w", errNothingSealed)
	case code == exit.Failed && written: // the guest's own words are about its part
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

// partPlan makes the plan of the part: that of the native part, with the
// contenders that it left. Rates found for the native kernel are found again.
func (j *Job) partPlan() error {
	f := j.request
	native, err := result.Load(f.PartOf)
	if err != nil {
		return err
	}
	plan := native.Run.Plan
	if err := f.Adopt(plan.Settings); err != nil {
		return err
	}
	// The guest has CPUs of its own, and the user's own contender never needs it.
	f.CPUs, f.CNIConf, f.cniText = "", "", ""
	f.Baseline, f.Out = native.Run.Baseline, filepath.Join(f.PartOf, PartDir)
	options, err := f.labOptions()
	if err != nil {
		return err
	}
	j.Place = NewLab(options)
	if j.Catalogue, err = LoadCatalogue(); err != nil {
		return err
	}
	if j.only = leftToGuest(&native.Run); len(j.only) == 0 {
		return exit.Usage("the run %s left nothing to another kernel", f.PartOf)
	}
	j.Plan = plan
	j.Plan.Contenders, j.Plan.Gaps, j.Plan.Capacity, j.Plan.RatesFrom, j.Plan.Settings = nil, nil, nil, "", f.Settings()
	if len(plan.Capacity) > 0 {
		f.Suite, f.Steps = plan.Suite, nil
		suite, err := f.suite(j.Catalogue)
		if err != nil {
			return err
		}
		uncalibrated, err := suite.Expand("auto", f.Services)
		if err != nil {
			return err
		}
		j.Plan.Steps = slices.Clone(plan.Steps)
		for i, step := range j.Plan.Steps {
			if at := slices.IndexFunc(uncalibrated, func(s result.Step) bool { return s.ID == step.ID }); at >= 0 {
				j.Plan.Steps[i] = uncalibrated[at]
			}
		}
	}
	return j.programs(j.Plan.Steps)
}

// leaves says that a guest follows which may run the contender.
func (j *Job) leaves(u *arena.Unsupported) bool { return u.OtherKernel && j.request.GuestFollows }

// withGuestRemedy adds the guest to the remedies of what needs another kernel.
func withGuestRemedy(u *arena.Unsupported) *arena.Unsupported {
	if !u.OtherKernel || microvm.Inside() {
		return u
	}
	told := *u
	told.Remedy += ", or run it in a guest: --arena microvm"
	return &told
}
