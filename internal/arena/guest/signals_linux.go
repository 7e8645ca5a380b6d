package guest

import (
	"os"
	"syscall"

	"github.com/cnibench/cnibench/internal/arena/guest/vm"
)

// Signals are the signals as package vm takes them.
func Signals(from <-chan os.Signal) <-chan vm.Signal {
	to := make(chan vm.Signal, cap(from))
	go func() {
		for s := range from {
			if number, ok := s.(syscall.Signal); ok {
				to <- number
			}
		}
	}()
	return to
}
