package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cnibench/cnibench/internal/diagnose"
	"github.com/cnibench/cnibench/internal/tune"
)

// The operations of a trial: settings that are changed for a while.
const (
	opTry   = "try"
	opUntry = "untry"
)

// Try asks for values to be set until Untry, or until the agent ends.
type Try struct {
	// Journal is the folder of the journal that holds the old values, so that they come
	// back after a crash, too: `cnibench tune revert`.
	Journal string            `json:"journal"`
	Changes []diagnose.Change `json:"changes"`
	// Machine lets the values be those of the machine's own first namespace.
	Machine bool `json:"machine,omitempty"`
}

func (t *Try) complete() error {
	if t.Journal == "" || len(t.Changes) == 0 {
		return errors.New("a trial needs a folder for its journal, and changes")
	}
	return nil
}

// trial is what is changed now.
type trial struct {
	machine *tune.Machine
	journal *tune.Journal
	mark    int
	expiry  *time.Timer
}

// maxTrial is how long a trial holds: longer than a slice and shorter than anybody notices.
// A client that was killed does not end the agent at once.
const maxTrial = 10 * time.Second

// Try sets values at the endpoint. After an error nothing is changed.
func (c *Client) Try(ctx context.Context, t Try) error {
	_, err := call[none](ctx, c, opTry, t, 0)
	return err
}

// Untry takes back what Try has set. The error names what was not.
func (c *Client) Untry(ctx context.Context) error {
	_, err := call[none](ctx, c, opUntry, none{}, 0)
	return err
}

func (s *server) try(ctx context.Context, t Try) (none, error) {
	s.trialMu.Lock()
	defer s.trialMu.Unlock()
	if s.trial != nil {
		return none{}, errors.New("something is tried already; take it back first")
	}
	m, err := trialMachine(t.Machine)
	if err != nil {
		return none{}, err
	}
	j, err := tune.OpenJournal(t.Journal, m.BootID())
	if err != nil {
		return none{}, err
	}
	current := &trial{machine: m, journal: j, mark: j.Mark()}
	s.trial = current
	current.expiry = time.AfterFunc(maxTrial, func() {
		s.trialMu.Lock()
		defer s.trialMu.Unlock()
		if s.trial == current {
			_ = s.takeBack(context.Background()) // what is left is in the journal
		}
	})
	if err := s.trial.set(ctx, t.Changes); err != nil {
		return none{}, errors.Join(err, s.takeBack(ctx))
	}
	return none{}, nil
}

func (t *trial) set(ctx context.Context, changes []diagnose.Change) error {
	item := tune.Item{Setting: tune.Setting{Name: "diagnose"}, State: tune.StateChange}
	for _, c := range changes {
		place := tune.Place{Kind: tune.Kind(c.Kind), Name: c.Name}
		from, err := t.machine.Read(ctx, place)
		if err != nil {
			return err
		}
		item.Changes = append(item.Changes, tune.Change{Place: place, From: from, To: c.To})
	}
	made, failed, err := tune.Apply(ctx, t.machine, t.journal, []tune.Item{item})
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

func (s *server) untry(ctx context.Context, _ none) (none, error) {
	s.trialMu.Lock()
	defer s.trialMu.Unlock()
	if s.trial == nil {
		return none{}, nil
	}
	return none{}, s.takeBack(ctx)
}

func (s *server) takeBack(ctx context.Context) error {
	t := s.trial
	s.trial = nil
	t.expiry.Stop()
	return errors.Join(tune.RevertTo(ctx, t.machine, t.journal, t.mark), t.journal.Close())
}

// endTrial takes back what is tried when the agent ends, also because its client is gone.
func (s *server) endTrial() {
	s.trialMu.Lock()
	defer s.trialMu.Unlock()
	if s.trial != nil {
		_ = s.takeBack(context.Background()) // what is left is in the journal
	}
}
