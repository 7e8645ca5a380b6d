// Package vm runs a command under another Linux kernel. It boots the kernel in QEMU with this
// program as init, shares the host's root read-only under a temporary overlay, and passes
// input, output, signals and the exit code. It knows no arena, suite or run, builds no image,
// and leaves nothing behind: the guest's disk is an initramfs in memory, and QEMU ends with the
// process that started it. Next: run_linux.go for the host's side, init_linux.go for the
// guest's; frame.go is the protocol between them.
package vm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/text"
)

// Config describes one guest and its command.
type Config struct {
	Kernel Kernel
	CPUs   int    // virtual CPUs; 0: as many as the host has, or 1 if QEMU cannot emulate several
	Memory int64  // bytes; 0: DefaultMemory
	Accel  string // AccelAuto (or empty), AccelKVM or AccelTCG
	// NICs lists network devices to look at and tune, each one of NICModels. Devices of one
	// model are on one switch and reach nothing else. With any device the guest has a PCI bus.
	NICs []string

	Argv     []string // the command; its file is looked up in the guest
	Env      []string // its environment; nil: none
	Dir      string   // its working directory, by its path on the host
	Writable []string // folders of the host that the guest may write; all other writes are thrown away
	Terminal bool     // give the command a terminal of its own; Stdin must be one

	Stdin          io.Reader // nil: empty
	Stdout, Stderr io.Writer // nil: thrown away

	Timeout time.Duration // for the whole guest; 0: none
	Signals <-chan Signal // passed to the command; the second terminating signal stops the guest itself
	Resized <-chan Size   // the terminal's size, the first at the start
	Log     *slog.Logger  // nil: silent

	Init string // the program that is the guest's init; empty: this one
}

// DefaultMemory is enough for a lab of two nodes.
const DefaultMemory = 2 << 30

// The accelerators. KVM runs the guest on the CPU; TCG emulates one, many
// times slower.
const (
	AccelAuto = "auto" // KVM if it really boots a guest, else TCG
	AccelKVM  = "kvm"
	AccelTCG  = "tcg"
)

// Variables that the guest's init sets for the user's command. This program reads Facts.
const (
	// GuestEnv holds the guest's kernel release. It is set if the command runs in a guest.
	GuestEnv = "CNIBENCH_VM"
	// EmulatedEnv is "true" if the guest's CPU is emulated, else "false".
	EmulatedEnv = "CNIBENCH_VM_EMULATED"
)

// Facts are what a process in a guest knows of the guest.
type Facts struct {
	Emulated bool `json:"emulated"` // the CPU
}

// factsFile is the file in which the guest's init hands the facts over, as JSON.
const factsFile = "/run/cnibench-guest.json"

// Here returns the facts of the guest that this process runs in; nil outside of guests, and in
// the lab's own namespaces, to which a task brings them.
func Here() *Facts {
	var f Facts
	text, err := os.ReadFile(factsFile)
	if err != nil || json.Unmarshal(text, &f) != nil {
		return nil
	}
	return &f
}

// Accel returns the acceleration that the guest has, as a value of --accel.
func (f *Facts) Accel() string {
	if f.Emulated {
		return AccelTCG
	}
	return AccelKVM
}

// Unsupported says why a guest cannot run here, and what would help.
type Unsupported struct {
	Reason, Remedy string
}

func (e *Unsupported) Error() string { return e.Reason + "; " + e.Remedy }

// Misuse is an impossible request: a file that is not a kernel, modules of another kernel, a
// folder that cannot be shared.
type Misuse struct{ err error }

func (e *Misuse) Error() string { return e.err.Error() }
func (e *Misuse) Unwrap() error { return e.err }

func misuse(format string, args ...any) error { return &Misuse{fmt.Errorf(format, args...)} }

// GuestError says that a guest ended without an exit code of its command.
type GuestError struct {
	Reason  string   // "the guest's kernel panicked"
	Remedy  string   // may be empty
	Started bool     // the command may have begun
	Console []string // the last lines of its console
}

func (e *GuestError) Error() string {
	text := e.Reason
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	if len(e.Console) == 0 {
		return text
	}
	text += "; its console ended with:"
	for _, line := range e.Console {
		text += "\n  | " + line
	}
	return text
}

// Interrupted says that a signal ended the guest instead of, or before, its command.
type Interrupted struct{ Signal Signal }

func (e *Interrupted) Error() string {
	return fmt.Sprintf("the guest was ended by a signal: %v", e.Signal)
}

// ExitCode returns the exit code of a command that the signal ends.
func (e *Interrupted) ExitCode() int { return 128 + int(e.Signal) }

// ErrTimeout means that the guest ran longer than its timeout.
var ErrTimeout = errors.New("timed out")

func (c *Config) check() error {
	switch {
	case len(c.Argv) == 0:
		return errors.New("vm: no command; write it after the flags: cnibench vm -- COMMAND")
	case c.CPUs < 0:
		return fmt.Errorf("vm: %d CPUs; give 1 or more, or 0 for the default", c.CPUs)
	case c.Memory < 0:
		return fmt.Errorf("vm: %d bytes of memory; give more than 0, or 0 for the default", c.Memory)
	}
	for _, model := range c.NICs {
		if !slices.Contains(NICModels(), model) {
			return fmt.Errorf("vm: %w", text.Unknown("network device", model, NICModels()))
		}
	}
	switch c.Accel {
	case "", AccelAuto, AccelKVM, AccelTCG:
		return nil
	}
	return fmt.Errorf("vm: unknown accelerator %q; choose auto, kvm or tcg", c.Accel)
}
