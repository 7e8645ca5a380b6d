//go:build !linux

package vm

import (
	"context"
	"log/slog"
	"runtime"
)

// Signal is one for the guest's command.
type Signal int

var errOnlyLinux = &Unsupported{Reason: "guests are made on Linux only, and this is " + runtime.GOOS, Remedy: "run it on Linux"}

// IsInit says whether this process is the init of a guest.
func IsInit() bool { return false }

// Init is the guest's init.
func Init() {}

// Run boots a guest; only Linux does.
func Run(context.Context, Config) (int, error) { return 0, errOnlyLinux }

// Find is the kernel that spec names; only Linux has one.
func Find(context.Context, string, string, *slog.Logger) (Kernel, error) {
	return Kernel{}, errOnlyLinux
}

// Lookup is Find without a fetch.
func Lookup(string) (Kernel, bool) { return Kernel{}, false }

// Available says that only Linux has guests.
func Available() error { return errOnlyLinux }

const exclusive = 0

// lock locks nothing: there are no guests to keep a kernel for.
func lock(string, int) (unlock func(), err error) { return func() {}, nil }
