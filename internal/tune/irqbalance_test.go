package tune

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/host"
)

// programs are a machine's programs: what one that is called so writes, and
// how it ends.
type programs func(command string) (out string, err error)

// Start implements host.Runner.
func (p programs) Start(_ context.Context, c host.Command) (host.Process, error) {
	out, err := p(strings.Join(c.Argv, " "))
	var none *host.ProgramError
	if errors.As(err, &none) {
		return nil, err
	}
	_, _ = c.Stdout.Write([]byte(out)) // a buffer's
	return ended{err}, nil
}

// ended is a process that has ended.
type ended struct{ err error }

func (e ended) Wait() error          { return e.err }
func (ended) Signal(os.Signal) error { return nil }

// systemd is one with an irqbalance, or one that does not answer.
type systemd struct {
	state  string // of irqbalance
	silent bool
}

func (s *systemd) run(command string) (string, error) {
	switch {
	case s.silent:
		return "", &host.ExitError{Command: command, Code: 1, Stderr: "Failed to connect to bus: Connection refused"}
	case strings.HasPrefix(command, "systemctl show") && s.state == "":
		return "LoadState=not-found\nActiveState=inactive\n", nil
	case strings.HasPrefix(command, "systemctl show"):
		return "LoadState=loaded\nActiveState=" + s.state + "\n", nil
	case command == "systemctl stop irqbalance":
		s.state = "inactive"
	case command == "systemctl start irqbalance":
		s.state = "active"
	}
	return "", nil
}

// A systemd that does not answer has not lost the service: it stays in the
// journal until it does.
func TestServiceUnanswered(t *testing.T) {
	m, _ := build(t, shapes["laptop"])
	s := &systemd{state: "active"}
	m.Programs = programs(s.run)
	j := journalOf(t, m, t.TempDir())
	applyAll(t, m, j, "irqbalance")
	if s.state != "inactive" {
		t.Fatal(s.state)
	}
	s.silent = true
	if got := StatusOf(t.Context(), m, j); len(got) != 1 || got[0].State != ChangeUnreadable {
		t.Errorf("%+v", got)
	}
	r, err := Revert(t.Context(), m, j, 0, false)
	if err != nil || len(r.Failed) != 1 || !strings.Contains(r.Failed[0].Err.Error(), "Connection refused") || len(j.Entries()) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	s.silent = false
	if r, err := Revert(t.Context(), m, j, 0, false); err != nil || len(r.Restored) != 1 || s.state != "active" {
		t.Fatalf("%+v, %v; irqbalance is %s", r, err, s.state)
	}
}

// A service that was removed since has no value now, and is named.
func TestServiceGone(t *testing.T) {
	m, _ := build(t, shapes["laptop"])
	s := &systemd{state: "active"}
	m.Programs = programs(s.run)
	j := journalOf(t, m, t.TempDir())
	applyAll(t, m, j, "irqbalance")
	s.state = ""
	if r, err := Revert(t.Context(), m, j, 0, false); err != nil || len(r.Gone) != 1 || r.Gone[0].Name != "irqbalance" || len(j.Entries()) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
}

// Where no systemd answers for irqbalance there is nothing to change.
func TestIrqbalancePlan(t *testing.T) {
	silent := &systemd{silent: true}
	for _, c := range []struct {
		name string
		run  programs
		runs bool // its process does
		want State
		word string
	}{
		{"running service", (&systemd{state: "active"}).run, true, StateChange, ""},
		{"stopped service", (&systemd{state: "failed"}).run, false, StateDone, ""},
		{"unknown service", (&systemd{}).run, false, StateNotApplicable, "does not run here"},
		{"no systemd", silent.run, false, StateNotApplicable, "does not run here"},
		{"no systemd, a process", silent.run, true, StateAdvice, "process 77"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, root := build(t, shapes["laptop"])
			m.Programs = c.run
			if c.runs {
				(writer{t, root}).file(filepath.Join("proc", "77", "comm"), "irqbalance")
			}
			item := planOf(t, m, "irqbalance")[0]
			if words := item.Reason + strings.Join(item.Advice, ""); item.State != c.want || !strings.Contains(words, c.word) {
				t.Errorf("%s: %s", item.State, words)
			}
		})
	}
}
