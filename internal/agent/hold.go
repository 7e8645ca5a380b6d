package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/tune"
)

// maxTrial is how long a trial holds: longer than a slice and shorter than anybody notices.
const maxTrial = 10 * time.Second

// trialSetting is the setting's name of trials in the journal.
const trialSetting = tune.Trial

// settle takes back what a trial has left whose holder was killed itself, and says how many
// values that were.
func settle(m *tune.Machine, journal string) (n int, err error) {
	if !tune.HasJournal(journal) {
		return 0, nil
	}
	j, err := tune.OpenJournal(journal, m.BootID())
	if err != nil {
		return 0, err
	}
	mark := j.MarkOf(trialSetting)
	for _, e := range j.Entries() {
		if e.Setting == trialSetting {
			n++
		}
	}
	return n, errors.Join(tune.RevertTo(context.Background(), m, j, mark), j.Close())
}

// holderName is what the kernel calls a process of Hold (TASK_COMM_LEN is 16).
const holderName = "cnibench-hold"

// held is a line of Hold's output: the changes were made, or they were taken back.
type held struct {
	Error string `json:"error,omitempty"`
}

func (h held) err() error {
	if h.Error == "" {
		return nil
	}
	return errors.New(h.Error)
}

func newHeld(err error) held {
	if err == nil {
		return held{}
	}
	return held{err.Error()}
}

// Hold is a process of its own beside the agent, so that what is tried is taken back
// whoever is killed. It reads a Try from in, makes its changes through the journal, and
// takes them back when in ends or after maxTrial. It writes a line to out after each. in is
// a pipe from the agent, which the kernel closes when the agent ends in whatever way; no
// signal that can be ignored ends Hold. One that holds settings of the machine leaves the
// control groups of its pod, whose end kills what is in them.
func Hold(in io.Reader, out io.Writer) error {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGPIPE)
	setName(holderName) // before anything is changed
	r := json.NewDecoder(in)
	var t Try
	if err := r.Decode(&t); err != nil {
		return fmt.Errorf("agent hold: the trial: %w", err)
	}
	m, err := trialMachine(t.Machine)
	if err != nil {
		return json.NewEncoder(out).Encode(newHeld(err))
	}
	if t.Machine {
		leaveControlGroups()
	}
	return hold(m, t, in, out, maxTrial)
}

// hold makes the trial's changes on the machine, waits for the end of in, at most for that
// long, and takes them back. An error is that an answer could not be written: nobody
// listens any more.
func hold(m *tune.Machine, t Try, in io.Reader, out io.Writer, limit time.Duration) error {
	answers := json.NewEncoder(out)
	j, err := tune.OpenJournal(t.Journal, m.BootID())
	if err != nil {
		return answers.Encode(newHeld(err))
	}
	mark := j.Mark()
	takeBack := func() error {
		return errors.Join(tune.RevertTo(context.Background(), m, j, mark), j.Close())
	}
	if err := makeChanges(m, j, t); err != nil {
		return answers.Encode(newHeld(errors.Join(err, takeBack())))
	}
	expiry := time.NewTimer(limit)
	defer expiry.Stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, in)
	}()
	said := answers.Encode(held{})
	var late error
	select {
	case <-ended:
	case <-expiry.C:
		late = fmt.Errorf("it was held for %v and taken back then: the figure is not one of it alone", limit)
	}
	err = errors.Join(takeBack(), late)
	return errors.Join(said, answers.Encode(newHeld(err)))
}

func makeChanges(m *tune.Machine, j *tune.Journal, t Try) error {
	ctx := context.Background()
	item := tune.Item{Setting: tune.Setting{Name: trialSetting}, State: tune.StateChange}
	for _, c := range t.Changes {
		place := tune.Place{Kind: tune.Kind(c.Kind), Name: c.Name}
		from, err := m.Read(ctx, place)
		if err != nil {
			return err
		}
		item.Changes = append(item.Changes, tune.Change{Place: place, From: from, To: c.To})
	}
	made, failed, err := tune.Apply(ctx, m, j, []tune.Item{item})
	switch {
	case err != nil:
		return err
	case len(made) == 0 && len(failed) > 0:
		return failed[0]
	case len(made) == 0:
		return fmt.Errorf("%s has that value already", item.Changes[0].Place)
	}
	return nil // an offload of several that the device does not have is left out
}
