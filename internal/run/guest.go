package run

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/cnibench/cnibench/internal/arena/microvm"
	"github.com/cnibench/cnibench/internal/exit"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/vm"
)

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

// owned refuses to go on with somebody else's run: its plan names the kernel of a
// guest, the image of a cluster's pods, and the CNI configuration that root runs.
// In a guest the owner was asked for before it was booted.
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

// guestConfig is the guest that the request chooses.
func (f *Request) guestConfig(ctx context.Context, log *slog.Logger) (vm.Config, error) {
	if err := vm.Available(); err != nil {
		return vm.Config{}, microvm.Error(err)
	}
	return f.Guest.Config(ctx, log)
}
