package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/vm"
)

func TestVMErrors(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want int
	}{
		{"no such guest here", &vm.Unsupported{Reason: "no QEMU", Remedy: "install it"}, exitUnsupported},
		{"wrong usage", new(vm.Misuse), exitUsage},
		{"died before its command", &vm.GuestError{Reason: "panicked"}, exitUnsupported},
		{"died under its command", &vm.GuestError{Reason: "panicked", Started: true}, exitFailed},
		{"out of time", fmt.Errorf("%w: %w", vm.ErrTimeout, &vm.GuestError{}), exitFailed},
		{"a disk that is full", io.ErrShortWrite, exitFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := vmError(tt.err)
			if got := exitCode(err); got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("exit code %d, want %d", got, tt.want)
			}
		})
	}
	if vmError(nil) != nil {
		t.Error("no error has become one")
	}
}

// What can't be is said before anything is fetched or booted.
func TestVMUsage(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for _, tt := range []struct{ name, args, want string }{
		{"the root shared", "--share /", "a guest has a /"},
		{"no such folder", "--share " + none, "no such file"},
		{"no such kernel", "--kernel " + none, "no such file"},
		{"no kernel", "--kernel " + os.Args[0], "not a Linux kernel image"},
		{"modules of a version", "--kernel 6.12 --modules " + none, "has its own"},
		{"no amount", "--memory banana", "--memory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newVMCmd()
			c.SetArgs(append(strings.Fields(tt.args), "--", "true"))
			c.SilenceErrors, c.SilenceUsage = true, true
			if err := c.ExecuteContext(t.Context()); err == nil || exitCode(err) != exitUsage || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
