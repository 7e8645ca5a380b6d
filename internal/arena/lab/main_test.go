//go:build linux

package lab

//make:alone 50

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/testutil/arenatest"
)

// TestMain starts the test program again inside the lab's container, as the
// command line does: every test of this package runs there.
// It is the init of a guest, too.
func TestMain(m *testing.M) {
	if vm.IsInit() {
		vm.Init()
	}
	if arenatest.MainAgent() {
		return
	}
	if !Contained() {
		code, err := Contain(context.Background(), os.Args[1:])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(code)
	}
	if err := Enter(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
