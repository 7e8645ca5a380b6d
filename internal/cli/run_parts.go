package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
	"github.com/cnibench/cnibench/internal/vm"
)

// A run has parts: what the running kernel can, and, in partDir of its
// directory, a whole run of what only another kernel can. docs/adr/0002 says
// why. The outer process, before the lab's container, leads both.

// arenaMicroVM is the arena of runs that a guest made.
const arenaMicroVM = "microvm"

// partDir is the guest's run directory below the run's own.
const partDir = "microvm"

// partsEnv tells the process in the lab's container that its caller goes on
// with a guest, so that contenders may be left to that.
const partsEnv = "CNIBENCH_PARTS"

// exitAllInGuest is how the process in the lab's container says that every
// contender which was asked for needs another kernel; nothing was written.
const exitAllInGuest = 75

func (f *runFlags) addGuestFlags(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.guest.kernel, "kernel", "", "microvm: `version` or image, as for `cnibench vm` (default "+vm.DefaultVersion+")")
	fl.StringVar(&f.guest.modules, "modules", "", "microvm: lib/modules/RELEASE `folder` of a kernel given by path")
	fl.StringVar(&f.guest.accel, "accel", vm.AccelAuto, "microvm: auto, kvm or tcg")
	fl.IntVar(&f.guest.cpus, "vm-cpus", 0, "microvm: CPUs of the guest (default: as cnibench vm chooses)")
	fl.StringVar(&f.guest.memory, "vm-memory", "4G", "microvm: memory of the guest")
	fl.StringVar(&f.partOf, "part-of", "", "run what the run in `DIR` left to another kernel")
	_ = fl.MarkHidden("part-of")
}

// lead runs the command line in the arena that it asks for, outside of the
// lab's container.
func (j *job) lead(c *cobra.Command) error {
	f := j.flags
	whole := f.arena == arenaMicroVM || j.resumed != nil && j.resumed.Arena == arenaMicroVM
	if os.Getenv(vm.GuestEnv) != "" { // a guest's own run: the kernel is this one
		return contain(c.Context())
	}
	if whole {
		return j.inGuest(c, nil)
	}
	if f.arena == "lab" {
		return contain(c.Context())
	}
	// The container's process must write where this one reads.
	if j.resumed == nil && !c.Flags().Changed("out") {
		os.Args = append(os.Args, "--out="+f.out)
	}
	if err := os.Setenv(partsEnv, "1"); err != nil {
		return err
	}
	err := contain(c.Context())
	var exit *exitError
	if errors.As(err, &exit) && exit.code == exitAllInGuest {
		return j.inGuest(c, nil)
	}
	if err != nil {
		return err
	}
	return j.part(c)
}

// part runs, after the native rounds, what they left to another kernel.
func (j *job) part(c *cobra.Command) error {
	run, err := result.Load(j.flags.out)
	if err != nil {
		return err
	}
	left := leftToGuest(&run.Run)
	if len(left) == 0 {
		return nil // and the container's process has reported
	}
	log := logger(os.Stderr)
	if err := j.flags.guest.sameKernel(filepath.Join(j.flags.out, partDir)); err != nil {
		return err
	}
	config, err := j.flags.guest.config(c.Context(), log)
	if err != nil {
		if vmUnsupported(err) == nil {
			return errors.Join(err, j.report(c, j.flags.out, true))
		}
		// Auto measures what it can; the table says what is missing and why.
		log.Warn("what needs another kernel is left out", "contenders", len(left), "why", err)
		return j.report(c, j.flags.out, true)
	}
	log.Info("the rest needs another kernel and runs in a guest", "kernel", config.Kernel.Release, "contenders", len(left))
	runErr := j.inGuest(c, &config)
	return errors.Join(runErr, j.report(c, j.flags.out, runErr == nil))
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
func (j *job) inGuest(c *cobra.Command, config *vm.Config) error {
	f := j.flags
	dir, args := f.out, append(slices.Clone(os.Args[1:]), "--arena=lab")
	if j.resumed == nil {
		args = append(args, "--out="+dir)
	}
	if config == nil {
		if err := f.guest.sameKernel(dir); err != nil {
			return err
		}
		found, err := f.guest.config(c.Context(), logger(os.Stderr))
		if err != nil {
			return vmError(err)
		}
		config = &found
		config.Stdout = c.OutOrStdout()
	} else {
		dir = filepath.Join(f.out, partDir)
		args = []string{"run", "--arena=lab", "--part-of=" + f.out}
		if _, err := os.Stat(filepath.Join(dir, "run.json")); err == nil {
			args = []string{"run", "--arena=lab", "--resume=" + dir}
		}
		config.Stdout = io.Discard // the report of both follows
	}
	made, err := makeDir(dir)
	if err != nil {
		return err
	}
	code, err := guestRun(c.Context(), config, dir, args)
	if made {
		_ = os.Remove(dir) // if nothing was written
	}
	if err != nil {
		return vmError(fmt.Errorf("%w\nwhat is sealed is a valid run: go on with `cnibench run --resume %s`", err, f.out))
	}
	if code != exitDone {
		return &exitError{code, fmt.Errorf("the run in the guest ended with exit code %d", code)}
	}
	return nil
}

func makeDir(dir string) (made bool, err error) {
	if _, err := os.Stat(dir); err == nil {
		return false, nil
	}
	return true, os.MkdirAll(dir, 0o755)
}

// guestRun runs this program with those arguments in a guest that can write
// into dir.
func guestRun(ctx context.Context, config *vm.Config, dir string, args []string) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return exitFailed, err
	}
	if config.Dir, err = os.Getwd(); err != nil {
		return exitFailed, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return exitFailed, err
	}
	config.Argv, config.Env = append([]string{self}, args...), guestEnv(os.Environ())
	config.Writable, config.Stderr = []string{dir}, os.Stderr
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, lab.EndSignals()...)
	defer signal.Stop(signals)
	config.Signals = guestSignals(signals)
	return vm.Run(ctx, *config)
}

// vmUnsupported is the *vm.Unsupported in err's chain, or nil.
func vmUnsupported(err error) *vm.Unsupported {
	var u *vm.Unsupported
	errors.As(err, &u)
	return u
}

// ofGuest marks a run that is made in a guest.
func ofGuest(run *result.Run) {
	if os.Getenv(vm.GuestEnv) == "" {
		return
	}
	run.Arena = arenaMicroVM
	if run.Environment == nil {
		run.Environment = result.Environment{}
	}
	run.Environment[analysis.EmulatedKey] = os.Getenv(vm.EmulatedEnv)
}

// partPlan makes the plan of a part: that of the whole, with the contenders
// which it left. Rates that the whole has found for its own kernel are found
// anew.
func (j *job) partPlan(c *cobra.Command) error {
	f := j.flags
	rec, err := result.Load(f.partOf)
	if err != nil {
		return err
	}
	run := &rec.Run
	if err := f.adopt(c, &run.Plan); err != nil {
		return err
	}
	// The guest has CPUs of its own, and nobody's own contender needs it.
	f.cpus, f.cniConf, f.cniText = "", "", ""
	f.baseline, f.out = run.Baseline, filepath.Join(f.partOf, partDir)
	if j.options, err = f.labOptions(); err != nil {
		return err
	}
	if j.catalogue, err = loadCatalogue(nil); err != nil {
		return err
	}
	j.only = leftToGuest(run)
	j.plan = run.Plan
	j.plan.Contenders, j.plan.Gaps, j.plan.Capacity, j.plan.Settings = nil, nil, nil, f.settings()
	if len(run.Plan.Capacity) > 0 {
		s, err := j.catalogue.suite(run.Plan.Suite)
		if err != nil {
			return err
		}
		asked, err := s.Expand("auto", nil)
		if err != nil {
			return err
		}
		j.plan.Steps = slices.Clone(run.Plan.Steps)
		for i, step := range j.plan.Steps {
			if at := slices.IndexFunc(asked, func(s result.Step) bool { return s.ID == step.ID }); at >= 0 {
				j.plan.Steps[i] = asked[at]
			}
		}
	}
	return j.programs(j.plan.Steps)
}

// leaves says that the contender is left to a guest that the caller boots.
func (j *job) leaves(u *arena.Unsupported) bool {
	return u.OtherKernel && j.flags.arena == "auto" && os.Getenv(partsEnv) == "1"
}

// toGuest says what is to be told of a contender that needs another kernel.
func toGuest(u *arena.Unsupported) *arena.Unsupported {
	if !u.OtherKernel || os.Getenv(vm.GuestEnv) != "" {
		return u
	}
	told := *u
	told.Remedy += ", or run it in a guest: --arena microvm (needs QEMU: apt-get install qemu-system-x86)"
	return &told
}

// addParts joins the reports of a run's parts with its own.
func addParts(dir string, r *analysis.Report, opt analysis.Options) *analysis.Report {
	part := filepath.Join(dir, partDir)
	if _, err := os.Stat(filepath.Join(part, "run.json")); err != nil {
		return r
	}
	rec, err := result.Load(part)
	if err != nil {
		r.Findings = append(r.Findings, analysis.Finding{Severity: analysis.Error, Code: "part_unreadable",
			Text: fmt.Sprintf("the part of the run under another kernel can't be read: %v", err), Next: "See " + part + "."})
		return r
	}
	return analysis.Merge(r, assembleOne(part, rec, opt), partDir)
}

// config is the guest that the flags of run describe.
func (g *guestFlags) config(ctx context.Context, log *slog.Logger) (vm.Config, error) {
	memory, err := unit.ParseBytes(g.memory)
	if err != nil {
		return vm.Config{}, usage("--vm-memory: %v", err)
	}
	v := vmFlags{kernel: g.kernel, modules: g.modules, accel: g.accel, memory: fmt.Sprint(int64(memory)), cpus: g.cpus}
	if err := vm.Available(); err != nil {
		return vm.Config{}, err
	}
	return v.config(ctx, log)
}

// sameKernel chooses the kernel of the guest that began the run in dir, where
// that kernel is here and the flags choose none.
func (g *guestFlags) sameKernel(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "run.json")); err != nil || g.kernel != "" {
		return nil
	}
	rec, err := result.Load(dir)
	if err != nil {
		return err
	}
	for _, k := range vm.Kernels() {
		if rec.Run.Arena == arenaMicroVM && k.Release == rec.Run.Environment["kernel.release"] {
			g.kernel, g.modules = k.Image, k.Modules
		}
	}
	return nil
}

// guestFlags choose the guest of a run.
type guestFlags struct {
	kernel, modules, accel, memory string
	cpus                           int
}
