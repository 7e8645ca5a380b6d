package run

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"github.com/cnibench/cnibench/internal/arena/guest"
	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text/console"
)

// Guest holds the flags that describe a guest.
type Guest = guest.Guest

// InGuest runs a command in the guest. The error has the command's exit code.
func InGuest(ctx context.Context, flags *Guest, argv []string, log *slog.Logger) error {
	return guest.Command(ctx, flags, argv, log, host.EndSignals())
}

// guestVenue is the lab in a guest. The process that the user starts chooses the guest, boots
// it and hands the task over; the process there starts the lab.
type guestVenue struct {
	*labVenue
	request *Request
}

func newGuest(f *Request) (Venue, error) {
	if f.Keep {
		return nil, exit.Usage("--keep: the lab of a guest can't be entered from here; leave it out, or keep a contender of this kernel: --arena lab")
	}
	if _, err := f.Guest.Check(); err != nil {
		return nil, err
	}
	options, err := f.labOptions()
	if err != nil {
		return nil, err
	}
	return &guestVenue{newLab(options, nil), f}, nil
}

// start implements Venue. The guest may write into the request's run directory, if it has
// one. The kernel may have to be downloaded.
func (g *guestVenue) start(ctx context.Context, _ ...*os.File) (*Worker, error) {
	config, err := g.request.Guest.Config(ctx, console.Logger(os.Stderr))
	if err != nil {
		return nil, err
	}
	if err := config.Settle(ctx); err != nil {
		return nil, guest.Error(err)
	}
	var cpus []int
	for cpu := range config.CPUs {
		cpus = append(cpus, cpu)
	}
	if err := g.request.placeOn(&g.options, cpus); err != nil {
		return nil, err
	}
	release := func() error { return nil }
	if dir := g.request.Out; dir != "" {
		if release, err = shareWithGuest(dir); err != nil {
			return nil, err
		}
		config.Writable = []string{dir}
	}
	return startWorker(place{At: atGuest, Lab: g.options, Guest: &vm.Facts{Emulated: config.Accel == vm.AccelTCG}}, func(stdin, stdout *os.File) (int, error) {
		config.Stdin, config.Stdout, config.Stderr = stdin, stdout, os.Stderr
		code, err := guest.Run(ctx, &config, []string{InsideCommand}, host.EndSignals())
		if err = errors.Join(err, release()); err != nil {
			err = guest.Error(lostError{err})
		}
		return code, err
	})
}

// bootSameKernel sets the guest's kernel to the release that a resumed run began with: a
// version, e.g. 6.8, has many releases.
func (f *Request) bootSameKernel(run *result.Run) {
	if run.Arena != MicroVM || f.Given["kernel"] || vm.IsPath(f.Guest.Kernel) {
		return
	}
	for _, k := range vm.Kernels() {
		if k.Release == run.Environment["kernel.release"] {
			f.Guest.Kernel, f.Guest.Modules = k.Image, k.Modules
		}
	}
}

// checkOwner refuses another user's run: its plan names programs that this user would
// run, such as a guest's kernel, an image, or the plugins of a CNI configuration. In a guest
// files have the owners of the machine outside.
func checkOwner(dir string) error {
	if vm.Here() != nil {
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

// shareWithGuest makes and locks the run directory for a guest that writes there: 9p does
// not pass the guest's own lock on. The returned function unlocks it, and removes it if it
// was made here and is empty.
func shareWithGuest(dir string) (release func() error, err error) {
	_, err = os.Stat(dir)
	made := errors.Is(err, os.ErrNotExist)
	if made {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	unlock, err := result.Lock(dir)
	if err != nil {
		return nil, err
	}
	return func() error {
		err := unlock()
		if made {
			_ = os.Remove(dir) // fails once the guest has written into it
		}
		return err
	}, nil
}
