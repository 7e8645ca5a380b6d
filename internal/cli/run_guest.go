package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/vm"
)

// guestFlags choose the guest of a run; zero is the default one.
type guestFlags struct {
	kernel, modules, accel, memory string
	cpus                           int
}

// guestMemory is the default of --vm-memory.
const guestMemory = "4G"

// guestSettings are the guest's flags that a plan remembers.
var guestSettings = []string{"kernel", "modules", "accel", "vm-cpus", "vm-memory"}

func (f *runFlags) addGuestFlags(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.guest.kernel, "kernel", "", "microvm: `version` or image, as for `cnibench vm` (default "+vm.DefaultVersion+")")
	fl.StringVar(&f.guest.modules, "modules", "", "microvm: lib/modules/RELEASE `folder` of a kernel given by path")
	fl.StringVar(&f.guest.accel, "accel", vm.AccelAuto, "microvm: auto, kvm or tcg")
	fl.IntVar(&f.guest.cpus, "vm-cpus", 0, "microvm: CPUs of the guest (default: as cnibench vm chooses)")
	fl.StringVar(&f.guest.memory, "vm-memory", guestMemory, "microvm: memory of the guest")
	fl.StringVar(&f.partOf, "part-of", "", "run what the run in `DIR` left to another kernel")
	_ = fl.MarkHidden("part-of")
}

// settings is what the plan remembers of the guest, by flag: what is not the
// default, and in a guest what it has become.
func (g *guestFlags) settings() map[string]string {
	s := map[string]string{"kernel": g.kernel, "modules": g.modules, "accel": g.accel, "vm-cpus": fmt.Sprint(g.cpus), "vm-memory": g.memory}
	for flag, isPath := range map[string]bool{"kernel": vm.IsPath(g.kernel), "modules": g.modules != ""} {
		if path, err := filepath.Abs(s[flag]); err == nil && isPath {
			s[flag] = path
		}
	}
	switch os.Getenv(vm.EmulatedEnv) {
	case "true":
		s["accel"] = vm.AccelTCG
	case "false":
		s["accel"] = vm.AccelKVM
	}
	defaults := map[string]string{"accel": vm.AccelAuto, "vm-cpus": "0", "vm-memory": guestMemory}
	maps.DeleteFunc(s, func(flag, value string) bool { return value == "" || value == defaults[flag] })
	return s
}

// args are the same as a command line.
func (g *guestFlags) args() []string {
	var args []string
	for flag, value := range g.settings() {
		args = append(args, "--"+flag+"="+value)
	}
	slices.Sort(args)
	return args
}

// vm is the same guest by the flags of `cnibench vm`.
func (g *guestFlags) vm() *vmFlags {
	return &vmFlags{
		kernel: g.kernel, modules: g.modules, accel: cmp.Or(g.accel, vm.AccelAuto), memory: cmp.Or(g.memory, guestMemory), cpus: g.cpus, prefix: "vm-",
	}
}

// config is the guest that the flags of run describe.
func (g *guestFlags) config(ctx context.Context, log *slog.Logger) (vm.Config, error) {
	if err := vm.Available(); err != nil {
		return vm.Config{}, vmError(err)
	}
	return g.vm().config(ctx, log)
}

// sameGuest chooses the guest that began the run in dir, as far as the command
// line chooses none.
func (f *runFlags) sameGuest(c *cobra.Command, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "run.json")); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	rec, err := result.Load(dir)
	if err != nil || rec.Run.Arena != arenaMicroVM || empty(rec) {
		return err
	}
	recorded := maps.Clone(rec.Run.Plan.Settings)
	maps.DeleteFunc(recorded, func(flag, _ string) bool { return !slices.Contains(guestSettings, flag) })
	if err := f.adopt(c, recorded); err != nil {
		return err
	}
	if f.given["kernel"] || vm.IsPath(f.guest.kernel) {
		return nil
	}
	// A version has many releases; the run goes on under its own.
	for _, k := range vm.Kernels() {
		if k.Release == rec.Run.Environment["kernel.release"] {
			f.guest.kernel, f.guest.modules = k.Image, k.Modules
		}
	}
	return nil
}

// owned refuses to boot a guest for somebody else's run: it can name the
// guest's kernel, and root of a guest is root in the folder that they share.
func owned(dir string) error {
	for _, name := range []string{dir, filepath.Join(dir, "run.json")} {
		info, err := os.Stat(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Geteuid() {
			return usage("%s belongs to user %d: no guest is booted for somebody else's run; resume it as that user, or natively with --arena lab", name, s.Uid)
		}
	}
	return nil
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
	config.Argv, config.Env = append([]string{self}, args...), guestEnv(os.Environ())
	config.Writable, config.Stderr = []string{dir}, os.Stderr
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, lab.EndSignals()...)
	defer signal.Stop(signals)
	config.Signals = guestSignals(signals)
	return vm.Run(ctx, *config)
}
