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
	"github.com/cnibench/cnibench/internal/arena/guest"
	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text/console"
)

// Guest holds the flags that describe a guest.
type Guest = guest.Guest

// DefaultMemory is the memory of a run's guest.
const DefaultMemory = guest.DefaultMemory

// InGuest runs a command in the guest. The error carries the command's exit code if
// that is not exit.Done.
func InGuest(ctx context.Context, g *Guest, argv []string, log *slog.Logger) error {
	return withCode(guest.Command(ctx, g, argv, log, lab.EndSignals()))
}

// withCode returns err, or an error that carries the exit code if that is not exit.Done.
func withCode(code int, err error) error {
	if err == nil && code != exit.Done {
		return exit.With(code, nil)
	}
	return err
}

// NoGuestUnasked makes --arena auto the lab, for commands that boot a guest only with
// --arena microvm. Elsewhere flags of a guest are usage errors.
func (f *Request) NoGuestUnasked() error {
	if f.Arena == Auto {
		f.Arena = Lab
	}
	for _, flag := range append([]string{"nic"}, guest.SettingFlags...) {
		if f.Given[flag] && f.Arena != MicroVM {
			return exit.Usage("--%s: it is a guest's; add --arena %s", flag, MicroVM)
		}
	}
	return nil
}

// SameInGuest starts this same command line, with the extra arguments, in a guest that
// may write into the run directory, if there is one.
func (f *Request) SameInGuest(ctx context.Context, extra ...string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	g, unlock := f.Guest, func() error { return nil }
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
		g.Share = []string{f.Out}
	}
	args := os.Args[1:]
	flags := slices.Index(args, "--") // no flags follow
	if flags < 0 {
		flags = len(args)
	}
	err = InGuest(ctx, &g, slices.Concat([]string{exe}, args[:flags], extra, args[flags:]), console.Logger(os.Stderr))
	return errors.Join(err, unlock())
}

// checkGuest returns an error if the guest could not boot or not resume the run. It is
// called before anything is measured.
func (j *Job) checkGuest(ctx context.Context) error {
	g := &j.request.Guest
	if j.resumed != nil {
		for _, dir := range []string{j.request.Out, filepath.Join(j.request.Out, PartDir)} {
			if err := checkOwner(dir); err != nil {
				return err
			}
		}
	}
	if vm.IsPath(g.Kernel) || g.Modules != "" { // else the kernel is downloaded when a guest is needed
		_, err := vm.Find(ctx, g.Kernel, g.Modules, console.Logger(os.Stderr))
		return guest.Error(err)
	}
	return nil
}

// guestConfig returns the guest that the request chooses.
func (f *Request) guestConfig(ctx context.Context, log *slog.Logger) (vm.Config, error) {
	if err := vm.Available(); err != nil {
		return vm.Config{}, guest.Error(err)
	}
	return f.Guest.Config(ctx, log)
}

// adoptGuest sets the guest's flags as they were when the run in dir began. Flags on
// the command line stay.
func (f *Request) adoptGuest(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "run.json")); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	rec, err := result.Load(dir)
	if err != nil || rec.Run.Arena != MicroVM || empty(rec) {
		return err
	}
	recorded := maps.Clone(rec.Run.Plan.Settings)
	maps.DeleteFunc(recorded, func(flag, _ string) bool { return !slices.Contains(guest.SettingFlags, flag) })
	if err := f.Adopt(recorded); err != nil {
		return err
	}
	if f.Given["kernel"] || vm.IsPath(f.Guest.Kernel) {
		return nil
	}
	// A version, e.g. 6.8, has many releases. The run needs the one that it began with.
	for _, k := range vm.Kernels() {
		if k.Release == rec.Run.Environment["kernel.release"] {
			f.Guest.Kernel, f.Guest.Modules = k.Image, k.Modules
		}
	}
	return nil
}

// checkOwner refuses another user's run: its plan names programs that this user would
// run, such as a guest's kernel, an image, or the plugins of a CNI configuration. In a
// guest it refuses nothing, as the process that booted the guest has checked.
func checkOwner(dir string) error {
	if guest.Inside() {
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

// partInGuest measures in a guest the contenders that the native part left, or resumes
// that. The native part began at begin; --max-time counts from there.
func (j *Job) partInGuest(ctx context.Context, config *vm.Config, begin time.Time) error {
	dir := filepath.Join(j.request.Out, PartDir)
	part, err := LoadPart(j.request.Out)
	if err != nil {
		return err
	}
	request := j.asked
	request.Arena = Lab
	if part != nil && !empty(part) {
		request.Resume, request.Given = dir, map[string]bool{}
	} else {
		if part != nil { // its kernel ran no contender; the kernel of now may
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
		request.MaxTime, request.Given["max-time"] = max(time.Second, j.request.MaxTime-time.Since(begin)), true
	}
	config.Stdout = io.Discard // the report of both parts follows
	return j.inGuest(ctx, config, dir, request)
}

// inGuest carries the request out in a guest, which writes the run into dir.
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
	code, err := guest.Run(ctx, config, dir, args, lab.EndSignals())
	err = errors.Join(err, unlock())
	written := !made || os.Remove(dir) != nil
	next := j.request.sealed(j.request.Out)
	switch {
	case err != nil && written:
		return guest.Error(fmt.Errorf("%w\n%w", err, next))
	case err != nil:
		return guest.Error(err)
	case code > 128 && written: // by a signal
		return fmt.Errorf("interrupted; %w", next)
	case code > 128:
		return fmt.Errorf("interrupted %w", errNothingSealed)
	case code == exit.Failed && written: // the guest names the folder of its part to resume
		return fmt.Errorf("the run in the guest failed; %w", next)
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

// partPlan makes the plan of the guest's part: the native part's plan with the
// contenders that the native part left. Rates that are shares of a capacity become
// shares again, because the capacity under the guest's kernel is another.
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
	// The guest numbers its CPUs itself, and the user's own contender needs no guest.
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

// guestMayRun reports whether a guest follows that may run the contender.
func (j *Job) guestMayRun(u *arena.Unsupported) bool { return u.OtherKernel && j.request.GuestFollows }

// withGuestRemedy adds the guest to the remedy if another kernel would help.
func withGuestRemedy(u *arena.Unsupported) *arena.Unsupported {
	if !u.OtherKernel || guest.Inside() {
		return u
	}
	withGuest := *u
	withGuest.Remedy += ", or run it in a guest: --arena microvm"
	return &withGuest
}
