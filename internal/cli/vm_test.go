package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/arena/guest"
	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/cli/exit"
)

func TestVMErrors(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want int
	}{
		{"no such guest here", &vm.Unsupported{Reason: "no QEMU", Remedy: "install it"}, exit.Unsupported},
		{"wrong usage", new(vm.Misuse), exit.WrongUsage},
		{"died before its command", &vm.GuestError{Reason: "panicked"}, exit.Unsupported},
		{"died under its command", &vm.GuestError{Reason: "panicked", Started: true}, exit.Failed},
		{"out of time", fmt.Errorf("%w: %w", vm.ErrTimeout, &vm.GuestError{}), exit.Failed},
		{"a disk that is full", io.ErrShortWrite, exit.Failed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := guest.Error(tt.err)
			if got := exit.Code(err); got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("exit code %d, want %d", got, tt.want)
			}
		})
	}
	if guest.Error(nil) != nil {
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
			if err := c.ExecuteContext(t.Context()); err == nil || exit.Code(err) != exit.WrongUsage || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
