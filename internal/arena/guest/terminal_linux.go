package guest

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/cnibench/cnibench/internal/arena/guest/vm"
)

// ownTerminal gives the guest's command a terminal as large as this terminal.
// Until restore is called, this terminal passes every key on, Ctrl-C too.
func ownTerminal(config *vm.Config) (restore func(), err error) {
	in := int(os.Stdin.Fd())
	before, err := term.MakeRaw(in)
	if err != nil {
		return nil, err
	}
	resized := make(chan os.Signal, 1)
	resized <- syscall.SIGWINCH
	signal.Notify(resized, syscall.SIGWINCH)
	sizes := make(chan vm.Size)
	go func() {
		for range resized {
			if columns, rows, err := term.GetSize(in); err == nil {
				sizes <- vm.Size{Rows: uint16(rows), Columns: uint16(columns)}
			}
		}
	}()
	config.Terminal, config.Resized = true, sizes
	return func() {
		signal.Stop(resized)
		_ = term.Restore(in, before)
	}, nil
}
