package record

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// terminalPatience is what a command gets to end by the terminal's own Ctrl-C
// before it is passed on a second time: nothing tells us whether the signal
// came from the terminal, which sends it to the command too, or from a kill.
const terminalPatience = 300 * time.Millisecond

// signals are those sent to this process.
type signals struct{ c chan os.Signal }

func notify() *signals {
	s := &signals{make(chan os.Signal, 16)}
	signal.Notify(s.c, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	return s
}

func (s *signals) stop() { signal.Stop(s.c) }

// wait sleeps, and returns the signal that cut it short.
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

// fromTerminal says that the signal may have come from the terminal.
func (s *signals) fromTerminal(sig os.Signal) bool {
	if sig != os.Interrupt && sig != syscall.SIGQUIT {
		return false
	}
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false // there is none
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// signalCode is a shell's exit code for a program that the signal ended.
func signalCode(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 1
}
