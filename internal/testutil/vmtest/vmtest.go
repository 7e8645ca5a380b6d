// Package vmtest gives tests the kernel of a guest. It is for tests only; see
// ../needs. Next: inside.go.
package vmtest

import (
	"testing"

	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// Kernel returns the default kernel, for a test that boots a guest.
func Kernel(t testing.TB) vm.Kernel {
	t.Helper()
	needs.Guest(t)
	if err := vm.Available(); err != nil {
		needs.Missing(t, err.Error())
	}
	kernel, found := vm.Lookup("")
	if !found {
		needs.Missing(t, "no kernel "+vm.DefaultVersion+" here; fetch it with: cnibench vm -- true")
	}
	return kernel
}
