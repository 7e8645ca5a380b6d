//go:build !linux

package guest

import (
	"os"

	"github.com/cnibench/cnibench/internal/arena/guest/vm"
)

// Signals are the signals as package vm takes them.
func Signals(<-chan os.Signal) <-chan vm.Signal { return nil }
