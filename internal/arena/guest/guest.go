// Package guest is the lab under another kernel: it boots the guest in which
// this same program runs the lab. It knows nothing of plans, and of a run
// directory only that the guest may write there. Next: package vm, which boots
// the kernel.
package guest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/text/console"
	"github.com/cnibench/cnibench/internal/unit"
	"golang.org/x/term"
)

// Guest holds the flags that describe a guest. The zero value is the guest of a
// run without such flags.
type Guest struct {
	Kernel, Modules, Accel, Memory string
	CPUs                           int
	Timeout                        time.Duration
	Share, NICs                    []string

	Prefix string // of the flags --memory and --cpus: "vm-" for a command where those mean something else
}

// DefaultMemory is the memory of a run's guest.
const DefaultMemory = "4G"

// Check returns the guest's memory in bytes, or a usage error if a flag has an
// impossible value.
func (g *Guest) Check() (memory int64, err error) {
	asked, accel := cmp.Or(g.Memory, DefaultMemory), cmp.Or(g.Accel, vm.AccelAuto)
	size, err := unit.ParseBytes(asked)
	if err != nil {
		return 0, exit.Usage("--%smemory: %v", g.Prefix, err)
	}
	switch memory = int64(size); {
	case memory < 64<<20:
		return 0, exit.Usage("--%smemory %s: no kernel boots in that; give it 512M or more", g.Prefix, asked)
	case g.CPUs < 0 || g.CPUs > 255:
		return 0, exit.Usage("--%scpus %d: want 1 to 255", g.Prefix, g.CPUs)
	case g.Timeout < 0:
		return 0, exit.Usage("--timeout %v is negative; give a positive time, or 0 for none", g.Timeout)
	case accel != vm.AccelAuto && accel != vm.AccelKVM && accel != vm.AccelTCG:
		return 0, exit.Usage("--accel %q: want auto, kvm or tcg", g.Accel)
	case len(g.NICs) > vm.MaxNICs:
		return 0, exit.Usage("a guest has room for %d network devices, not for %d", vm.MaxNICs, len(g.NICs))
	}
	for _, model := range g.NICs {
		if !slices.Contains(vm.NICModels(), model) {
			return 0, exit.Usage("--nic: %v", text.Unknown("model", model, vm.NICModels()))
		}
	}
	return memory, nil
}

// Config returns the guest's configuration without a command. It may download
// the kernel.
func (g *Guest) Config(ctx context.Context, log *slog.Logger) (vm.Config, error) {
	c := vm.Config{CPUs: g.CPUs, Accel: cmp.Or(g.Accel, vm.AccelAuto), Timeout: g.Timeout, NICs: g.NICs, Log: log}
	var err error
	if c.Memory, err = g.Check(); err != nil {
		return c, err
	}
	for _, dir := range g.Share {
		if dir, err = vm.Shareable(dir); err != nil {
			return c, Error(fmt.Errorf("--share: %w", err))
		}
		c.Writable = append(c.Writable, dir)
	}
	c.Kernel, err = vm.Find(ctx, g.Kernel, g.Modules, log)
	return c, Error(err)
}

// Error adds the exit code to an error of package vm. A guest that ended before
// its command began counts as not supported here.
func Error(err error) error {
	var misuse *vm.Misuse
	var unsupported *vm.Unsupported
	var guest *vm.GuestError
	switch {
	case errors.As(err, &misuse):
		return exit.With(exit.WrongUsage, err)
	case errors.As(err, &unsupported),
		errors.As(err, &guest) && !guest.Started && !errors.Is(err, vm.ErrTimeout):
		return exit.With(exit.Unsupported, err)
	}
	return err
}

// Run runs this program with those arguments in the guest, and returns its exit code. The
// end signals are passed on to the program.
func Run(ctx context.Context, config *vm.Config, args []string, endSignals []os.Signal) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return exit.Failed, err
	}
	return start(ctx, config, append([]string{self}, args...), endSignals)
}

// Command runs a command in the guest with the caller's files, environment,
// working directory, input and output, and the terminal where there is one. The
// error has the command's exit code. The end signals are passed on to the command.
func Command(ctx context.Context, guest *Guest, argv []string, log *slog.Logger, endSignals []os.Signal) error {
	config, err := guest.Config(ctx, log)
	if err != nil {
		return err
	}
	config.Stdin, config.Stdout, config.Stderr = os.Stdin, os.Stdout, os.Stderr
	if term.IsTerminal(int(os.Stdin.Fd())) && console.IsTerminal(os.Stdout) {
		restore, err := ownTerminal(&config)
		if err != nil {
			return err
		}
		defer restore()
	}
	code, err := start(ctx, &config, argv, endSignals)
	if interrupted := (*vm.Interrupted)(nil); errors.As(err, &interrupted) {
		code, err = interrupted.ExitCode(), nil
	}
	if err == nil && code != exit.Done {
		return exit.With(code, nil)
	}
	return Error(err)
}

// start runs the command in the guest, in the caller's working directory.
func start(ctx context.Context, config *vm.Config, argv []string, endSignals []os.Signal) (code int, err error) {
	if config.Dir, err = os.Getwd(); err != nil {
		return exit.Failed, err
	}
	config.Argv, config.Env = argv, Environ(os.Environ())
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, endSignals...)
	defer signal.Stop(signals)
	config.Signals = Signals(signals)
	return vm.Run(ctx, *config)
}

// Environ returns the caller's environment without the variables that mean
// nothing in a guest, and with the folders of administrators' programs in PATH.
func Environ(env []string) []string {
	var kept []string
	hasPath := false
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		switch {
		case name == "PATH":
			hasPath = true
			v += ":/usr/local/sbin:/usr/sbin:/sbin"
		case strings.HasPrefix(name, "XDG_RUNTIME_") || strings.HasPrefix(name, "DBUS_") || strings.HasPrefix(name, "SSH_"):
			continue // sockets of this machine
		case name == "HOME" && value == "":
			continue
		}
		kept = append(kept, v)
	}
	if !hasPath {
		kept = append(kept, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	}
	return kept
}
