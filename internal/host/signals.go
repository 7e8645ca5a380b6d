package host

import (
	"os"
	"os/signal"
	"syscall"
)

// EndSignals returns the signals that end a run in order, without those that this
// process was started to ignore, e.g. by nohup.
func EndSignals() []os.Signal {
	var signals []os.Signal
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(s) {
			signals = append(signals, s)
		}
	}
	return signals
}
