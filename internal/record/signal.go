package record

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// signals receives the signals that are sent to this process.
type signals struct{ c chan os.Signal }

func notify() *signals {
	s := &signals{make(chan os.Signal, 16)}
	// A shell makes a background command ignore SIGINT and SIGQUIT. Go's runtime replaces
	// the disposition of SIGQUIT, so that of SIGINT decides for both.
	if signal.Ignored(os.Interrupt) {
		signal.Ignore(syscall.SIGQUIT)
	}
	for _, end := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2} {
		if !signal.Ignored(end) { // such as SIGHUP under nohup
			signal.Notify(s.c, end)
		}
	}
	return s
}

func (s *signals) stop() { signal.Stop(s.c) }

// wait sleeps for the duration, and returns the signal that ended the sleep early, or nil.
func (s *signals) wait(d time.Duration) os.Signal {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case got := <-s.c:
		return got
	}
}

// fromTerminal says whether the terminal sends this signal to the command, too, which
// must not get it twice. A signal of kill(1) can't be told from the terminal's.
func fromTerminal(sig os.Signal) bool {
	if sig != os.Interrupt && sig != syscall.SIGQUIT {
		return false
	}
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false // this process has no terminal
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// interrupted is a signal that came before the command ran.
type interrupted struct {
	signal os.Signal
	when   string
}

func (e *interrupted) Error() string { return fmt.Sprintf("%v %s", e.signal, e.when) }

// signalCode returns a shell's exit code for a program that the signal ended.
func signalCode(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 1
}
