//go:build !linux

package microvm

import (
	"os"

	"github.com/cnibench/cnibench/internal/vm"
)

// Signals are the signals as package vm takes them.
func Signals(<-chan os.Signal) <-chan vm.Signal { return nil }
