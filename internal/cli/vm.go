package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/nearest"
	"github.com/cnibench/cnibench/internal/unit"
	"github.com/cnibench/cnibench/internal/vm"
)

// vmFlags choose a guest.
type vmFlags struct {
	kernel, modules, accel, memory string
	cpus                           int
	timeout                        time.Duration
	share, nics                    []string
	list, asJSON, quiet            bool

	prefix string // of the names that other commands give memory and cpus
}

func newVMCmd() *cobra.Command {
	var f vmFlags
	c := &cobra.Command{
		Use:   "vm [flags] -- COMMAND [ARG…]",
		Short: "Run a command under another kernel",
		Long: strings.TrimSpace(`
Boots a Linux kernel in QEMU and runs a command there as root, with this
machine's files, environment, working directory, input and output; ends with
the command's exit code. What the command writes is thrown away, except in
folders that --share names. Nothing is left running, not even after kill -9.

--kernel takes a version (a package of the distribution, unpacked into a cache
when it is first used, not installed) or the path of an image. Where KVM does
not boot a guest its CPU is emulated, which is many times slower; figures from
there are good for ratios at most.`),
		Example: `  cnibench vm -- uname -r
  cnibench vm --kernel 6.1 --cpus 4 --memory 4G -- bash
  cnibench vm --share . -- sh -c 'modprobe wireguard && dmesg > dmesg.txt'
  cnibench vm --cpus 4 --nic virtio-net-pci --nic e1000 -- cnibench tune plan --nic eth0 --nic eth1
  cnibench vm --kernel /boot/vmlinuz-6.12.1 --modules /lib/modules/6.12.1 -- ip link
  cnibench vm --list`,
		RunE: func(c *cobra.Command, args []string) error {
			if f.list || f.kernel == "list" {
				return listKernels(c.OutOrStdout(), f.asJSON)
			}
			if len(args) == 0 {
				return usage("no command given; see `cnibench vm --help`")
			}
			return runVM(c, &f, args)
		},
	}
	fl := c.Flags()
	fl.SetInterspersed(false) // flags after the command are the command's
	fl.StringVar(&f.kernel, "kernel", "", "`version` such as 6.1 or 6.12, or the path of an image; list shows what is here (default "+vm.DefaultVersion+")")
	fl.StringVar(&f.modules, "modules", "", "lib/modules/RELEASE `folder` of a kernel given by path (default: beside it)")
	fl.StringVar(&f.accel, "accel", vm.AccelAuto, "auto (KVM where it really boots a guest, else tcg), kvm or tcg")
	fl.IntVar(&f.cpus, "cpus", 0, "CPUs of the guest (default: as many as this machine has, or 1 where they are emulated by a QEMU before 8.1)")
	fl.StringVar(&f.memory, "memory", "2G", "memory of the guest")
	fl.DurationVar(&f.timeout, "timeout", 0, "end the guest after this time (default: never)")
	fl.StringArrayVar(&f.share, "share", nil, "`folder` in which the guest's writes are real; may be repeated")
	fl.StringArrayVar(&f.nics, "nic", nil, "network device that reaches nothing, by `model`: "+strings.Join(vm.NICModels(), " or ")+"; may be repeated")
	fl.BoolVar(&f.list, "list", false, "list the kernels that are here")
	fl.BoolVar(&f.asJSON, "json", false, "with --list: print as JSON")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "say nothing but errors")
	return c
}

// listKernels prints the kernels of the cache and of this machine.
func listKernels(w io.Writer, asJSON bool) error {
	kernels := vm.Kernels()
	if asJSON {
		return json.NewEncoder(w).Encode(append([]vm.Kernel{}, kernels...))
	}
	for _, k := range kernels {
		fmt.Fprintf(w, "%-28s %-10s %s\n", k.Release, k.Source, k.Image)
	}
	if len(kernels) == 0 {
		fmt.Fprintf(w, "none yet: `cnibench vm -- COMMAND` gets %s\n", vm.DefaultVersion)
	}
	return nil
}

// check finds limits that no guest has, and gives the memory in bytes.
func (f *vmFlags) check() (memory int64, err error) {
	size, err := unit.ParseBytes(f.memory)
	if err != nil {
		return 0, usage("--%smemory: %v", f.prefix, err)
	}
	switch memory = int64(size); {
	case memory < 64<<20:
		return 0, usage("--%smemory %s: no kernel boots in that; give it 512M or more", f.prefix, f.memory)
	case f.cpus < 0 || f.cpus > 255:
		return 0, usage("--%scpus %d: want 1 to 255", f.prefix, f.cpus)
	case f.timeout < 0:
		return 0, usage("--timeout %v: too small", f.timeout)
	case f.accel != vm.AccelAuto && f.accel != vm.AccelKVM && f.accel != vm.AccelTCG:
		return 0, usage("--accel %q: want auto, kvm or tcg", f.accel)
	}
	return memory, nil
}

// config is the guest that the flags describe, without a command.
func (f *vmFlags) config(ctx context.Context, log *slog.Logger) (vm.Config, error) {
	c := vm.Config{CPUs: f.cpus, Accel: f.accel, Timeout: f.timeout, NICs: f.nics, Log: log}
	var err error
	if c.Memory, err = f.check(); err != nil {
		return c, err
	}
	for _, model := range f.nics {
		if !slices.Contains(vm.NICModels(), model) {
			return c, usage("--nic: %v", nearest.Unknown("model", model, vm.NICModels()))
		}
	}
	for _, dir := range f.share {
		if dir, err = vm.Shareable(dir); err != nil {
			return c, vmError(fmt.Errorf("--share: %w", err))
		}
		c.Writable = append(c.Writable, dir)
	}
	c.Kernel, err = vm.Find(ctx, f.kernel, f.modules, log)
	return c, vmError(err)
}

// vmError gives an error of package vm its exit code: a guest that never got
// as far as its command is one that can't run here.
func vmError(err error) error {
	var misuse *vm.Misuse
	var unsupported *vm.Unsupported
	var guest *vm.GuestError
	switch {
	case errors.As(err, &misuse):
		return &exitError{exitUsage, err}
	case errors.As(err, &unsupported),
		errors.As(err, &guest) && !guest.Started && !errors.Is(err, vm.ErrTimeout):
		return &exitError{exitUnsupported, err}
	}
	return err
}

func runVM(c *cobra.Command, f *vmFlags, argv []string) error {
	log := logger(os.Stderr)
	if f.quiet {
		log = slog.New(slog.DiscardHandler)
	}
	ctx := c.Context()
	config, err := f.config(ctx, log)
	if err != nil {
		return err
	}
	config.Argv, config.Env = argv, guestEnv(os.Environ())
	if config.Dir, err = os.Getwd(); err != nil {
		return err
	}
	config.Stdin, config.Stdout, config.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, lab.EndSignals()...)
	defer signal.Stop(signals)
	config.Signals = guestSignals(signals)
	if term.IsTerminal(int(os.Stdin.Fd())) && isTerminal(os.Stdout) {
		restore, err := ownTerminal(&config)
		if err != nil {
			return err
		}
		defer restore()
	}
	code, err := vm.Run(ctx, config)
	var ended *vm.Interrupted
	if errors.As(err, &ended) {
		return &exitError{ended.ExitCode(), nil}
	}
	if err != nil {
		return vmError(err)
	}
	if code != exitDone {
		return &exitError{code, nil}
	}
	return nil
}

// guestEnv is what of the caller's environment means the same in a guest.
func guestEnv(env []string) []string {
	var kept []string
	path := false
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		switch {
		case name == "PATH":
			path = true
			v += ":/usr/local/sbin:/usr/sbin:/sbin"
		case strings.HasPrefix(name, "XDG_RUNTIME_") || strings.HasPrefix(name, "DBUS_") || strings.HasPrefix(name, "SSH_"):
			continue // sockets of this machine
		case name == partsEnv:
			continue // of this command line
		case name == "HOME" && value == "":
			continue
		}
		kept = append(kept, v)
	}
	if !path {
		kept = append(kept, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	}
	return kept
}
