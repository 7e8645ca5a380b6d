//go:build !linux

package cli

import (
	"os"

	"github.com/cnibench/cnibench/internal/vm"
)

func guestSignals(<-chan os.Signal) <-chan vm.Signal { return nil }

func ownTerminal(*vm.Config) (restore func(), err error) { return func() {}, nil }
