//go:build !linux

package vm

import (
	"context"
	"log/slog"
	"runtime"
)

// Signal is a signal for the guest's command.
type Signal int

var errOnlyLinux = &Unsupported{Reason: "guests are made on Linux only, and this is " + runtime.GOOS, Remedy: "run it on Linux"}

// IsInit returns false: only Linux has guests.
func IsInit() bool { return false }

// Init is the guest's init.
func Init() {}

// Run returns an error: only Linux has guests.
func Run(context.Context, Config) (int, error) { return 0, errOnlyLinux }

// Settle returns an error: only Linux has guests.
func (*Config) Settle(context.Context) error { return errOnlyLinux }

// Find returns an error: only Linux has guests.
func Find(context.Context, string, string, *slog.Logger) (Kernel, error) {
	return Kernel{}, errOnlyLinux
}

// Lookup returns false: only Linux has guests.
func Lookup(string) (Kernel, bool) { return Kernel{}, false }

// Available returns an error: only Linux has guests.
func Available() error { return errOnlyLinux }

const exclusive = 0

// lock does nothing: there are no guests to keep a kernel for.
func lock(string, int) (unlock func(), err error) { return func() {}, nil }
