package tune

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// Failure is a change that could not be made or taken back.
type Failure struct {
	Setting string
	Place   Place
	Err     error
}

// BootID tells one start of the machine from the next; "" where it does not
// say.
func (m *Machine) BootID() string {
	b, err := m.Files.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return tidy(string(b))
}

// Apply makes the changes of the plan that are not done yet, each after its
// old value is in the journal. Where j holds changes already, these come on
// top. It goes on after a change that fails, and gives the changes that were
// made and those that failed. Errors: the journal, before which nothing is
// changed.
func Apply(ctx context.Context, m *Machine, j *Journal, items []Item) (made []Change, failed []Failure, err error) {
	if j.rebooted() && len(j.Entries()) > 0 {
		return nil, nil, errors.New("the machine was started anew since settings were applied; run `cnibench tune revert` first, which tidies up")
	}
	for _, item := range items {
		for _, c := range item.Pending() {
			if err := ctx.Err(); err != nil {
				return made, failed, err
			}
			done, err := apply(ctx, m, j, item.Setting.Name, c)
			var broken *journalError
			switch {
			case errors.As(err, &broken):
				return made, failed, err
			case err != nil:
				failed = append(failed, Failure{item.Setting.Name, c.Place, err})
			case !done.Done():
				made = append(made, done)
			}
		}
	}
	return made, failed, nil
}

// journalError is that of the journal itself, after which nothing is changed.
type journalError struct{ error }

func (e *journalError) Unwrap() error { return e.error }

// apply makes one change. The old value is read anew: an earlier change may
// have moved it.
func apply(ctx context.Context, m *Machine, j *Journal, setting string, c Change) (Change, error) {
	var err error
	if c.From, err = m.Read(ctx, c.Place); err != nil || c.Done() {
		return c, err
	}
	n := len(j.entries)
	intent := &jsonEntry{Setting: setting, Place: c.Place, From: c.From, To: c.To, Written: time.Now().UTC().Truncate(time.Second)}
	if err := j.note(line{Step: "intent", N: n, Change: intent}); err != nil {
		return c, &journalError{err}
	}
	if err := m.Write(ctx, c.Place, c.To); err != nil {
		now, readErr := m.Read(ctx, c.Place)
		if readErr == nil && c.Same(now, c.From) {
			if err := j.note(line{Step: "ended", N: n, How: endUntouched}); err != nil {
				return c, &journalError{err}
			}
		}
		return c, err
	}
	// The kernel may round a value or write it another way: what it says now
	// is what drift is measured from.
	now, err := m.Read(ctx, c.Place)
	if err != nil {
		return c, err
	}
	if c.Same(now, c.From) {
		if err := j.note(line{Step: "ended", N: n, How: endUntouched}); err != nil {
			return c, &journalError{err}
		}
		return c, fmt.Errorf("set %s to %s: it stays %s", c.Place, c.To, now)
	}
	if err := j.note(line{Step: "done", N: n, Read: now}); err != nil {
		return c, &journalError{err}
	}
	c.To = now
	return c, nil
}

// Standing is where an applied change stands.
type Standing string

// The standings.
const (
	StandingApplied  Standing = "applied"  // as it was set
	StandingDrifted  Standing = "drifted"  // somebody has changed it since
	StandingReset    Standing = "reset"    // it has its old value again, or never left it
	StandingReplaced Standing = "replaced" // a later change of the journal is on top
	StandingGone     Standing = "gone"     // the place is not there any more
	StandingRebooted Standing = "rebooted" // the machine was started anew, which undid it
)

// Status is an entry with where it stands.
type Status struct {
	Entry
	Now      string // "" where it cannot be read
	Standing Standing
}

// StatusOf compares the machine with what was applied.
func StatusOf(ctx context.Context, m *Machine, j *Journal) []Status {
	var list []Status
	entries := j.Entries()
	for i, e := range entries {
		s := Status{Entry: e}
		s.Now, s.Standing = standing(ctx, m, j, &e)
		for _, later := range entries[i+1:] {
			if later.Place == e.Place {
				s.Standing = StandingReplaced
			}
		}
		list = append(list, s)
	}
	return list
}

func standing(ctx context.Context, m *Machine, j *Journal, e *Entry) (now string, s Standing) {
	if j.rebooted() && !e.outlivesBoot() {
		return "", StandingRebooted
	}
	now, err := m.Read(ctx, e.Place)
	if err != nil {
		return "", StandingGone
	}
	applied := e.Read
	if applied == "" {
		applied = e.To // a crash came before it was read back
	}
	switch {
	case e.Same(now, applied):
		return now, StandingApplied
	case e.Same(now, e.From):
		return now, StandingReset
	}
	return now, StandingDrifted
}

// How an entry ended.
const (
	endRestored  = "restored"
	endUntouched = "untouched" // it had its old value already
	endGone      = "gone"
	endRebooted  = "rebooted"
)

// Reverted is what Revert did.
type Reverted struct {
	Restored []Entry
	// Kept are those that somebody else has changed since they were applied:
	// they are left alone and stay in the journal.
	Kept   []Status
	Failed []Failure
}

// Revert takes the changes since the mark back, the newest first, and removes
// the journal when none is left. A value that somebody has changed since is
// kept, unless force. Errors: the journal; what fails on the machine is in
// Reverted and stays in the journal, so that it can be tried again.
func Revert(ctx context.Context, m *Machine, j *Journal, mark int, force bool) (r Reverted, err error) {
	for n := len(j.entries) - 1; n >= mark; n-- {
		e := j.entries[n]
		if e.Ended != "" {
			continue
		}
		now, standing := standing(ctx, m, j, e)
		how := ""
		switch standing {
		case StandingRebooted:
			how = endRebooted
		case StandingGone:
			if _, err := m.Read(ctx, e.Place); !errors.Is(err, fs.ErrNotExist) {
				r.Failed = append(r.Failed, Failure{e.Setting, e.Place, err})
				continue
			}
			how = endGone
		case StandingReset:
			how = endUntouched
		case StandingDrifted:
			if !force {
				r.Kept = append(r.Kept, Status{Entry: *e, Now: now, Standing: standing})
				continue
			}
			fallthrough
		default:
			if err := restore(ctx, m, e); err != nil {
				r.Failed = append(r.Failed, Failure{e.Setting, e.Place, err})
				continue
			}
			how = endRestored
			r.Restored = append(r.Restored, *e)
		}
		if err := j.note(line{Step: "ended", N: n, How: how}); err != nil {
			return r, err
		}
	}
	return r, j.end()
}

func restore(ctx context.Context, m *Machine, e *Entry) error {
	if err := m.Write(ctx, e.Place, e.From); err != nil {
		return err
	}
	now, err := m.Read(ctx, e.Place)
	if err == nil && !e.Same(now, e.From) {
		err = fmt.Errorf("set %s back to %s: it is %s", e.Place, e.From, now)
	}
	return err
}
