package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"time"
)

// Failure is a change that could not be made or reverted.
type Failure struct {
	Setting string
	Place   Place
	Err     error // names the place
}

func (f Failure) Error() string { return fmt.Sprintf("setting %s: %v", f.Setting, f.Err) }

func (f Failure) Unwrap() error { return f.Err }

// BootID returns the kernel's id of this start of the machine; "" if it cannot be read.
func (m *Machine) BootID() string {
	b, err := m.Files.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return tidy(string(b))
}

// netNS returns the identity of the machine's network namespace; "" if it cannot be read.
func (m *Machine) netNS() string {
	link, _ := m.Files.Readlink("/proc/self/ns/net") // without a link there is no identity
	return link
}

// perNetNS reports whether every network namespace has a value of its own at the place.
func (p Place) perNetNS() bool {
	return accessors[p.Kind].perNetNS || strings.HasPrefix(p.Name, "/proc/sys/net/") || strings.HasPrefix(p.Name, netClass)
}

// Apply makes the changes of the plan that are not done yet. It writes each old value to
// j first, and adds to what j already holds. If a change fails, Apply continues with the
// next one. It returns the changes that were made and those that failed. If no change is
// in effect at the end, the journal is deleted. When ctx ends, Apply finishes the current
// change and stops. It returns ctx's error, or an error of the journal, after which it
// changes nothing more.
func Apply(ctx context.Context, m *Machine, j *Journal, items []Item) (made []Change, failed []Failure, err error) {
	if j.rebooted() && len(j.Entries()) > 0 {
		return nil, nil, errors.New("the machine was restarted since settings were applied; run `cnibench tune revert` first, which tidies up")
	}
	defer func() { err = errors.Join(err, j.end()) }()
	for _, item := range items {
		for _, c := range item.Pending() {
			if err := ctx.Err(); err != nil {
				return made, failed, err
			}
			// A change that was cut off could not be read back.
			done, err := apply(context.WithoutCancel(ctx), m, j, item.Setting.Name, c)
			if !done.Done() {
				made = append(made, done)
			}
			var broken *journalError
			switch {
			case errors.As(err, &broken):
				return made, failed, err
			case err != nil:
				failed = append(failed, Failure{item.Setting.Name, c.Place, err})
			}
		}
	}
	return made, failed, nil
}

// journalError is an error of the journal. Nothing is changed after it.
type journalError struct{ error }

func (e *journalError) Unwrap() error { return e.error }

// apply makes one change and returns it with the value read back. It returns the zero
// Change if there was nothing to do or the change failed. It reads the old value again,
// because an earlier change may have moved it.
func apply(ctx context.Context, m *Machine, j *Journal, setting string, c Change) (Change, error) {
	var none Change
	var err error
	if c.From, err = m.Read(ctx, c.Place); err != nil || c.Done() {
		return none, err
	}
	n := len(j.entries)
	intent := &Entry{Setting: setting, Place: c.Place, From: c.From, To: c.To, By: j.By, Written: time.Now().UTC().Truncate(time.Second)}
	if c.perNetNS() {
		intent.NetNS = m.netNS()
	}
	if err := j.note(line{Step: "intent", N: n, Change: intent}); err != nil {
		return none, &journalError{err}
	}
	now, read, err := m.set(ctx, c)
	step := line{Step: "done", N: n, Read: now} // the value that drift is measured from, also if the write failed
	if c.Same(now, c.From) {
		step = line{Step: "ended", N: n, How: endUntouched}
	}
	c.To = now
	if err != nil {
		c = none
	}
	if read { // an entry without "done" counts as applied, whatever its value is
		if noteErr := j.note(step); noteErr != nil {
			return c, &journalError{errors.Join(err, noteErr)}
		}
	}
	return c, err
}

// ChangeState is the state of an applied change.
type ChangeState string

// The states of a change.
const (
	ChangeApplied    ChangeState = "applied"    // it has the value that was set
	ChangeDrifted    ChangeState = "drifted"    // somebody has changed the value since
	ChangeReset      ChangeState = "reset"      // it has its old value again, or never lost it
	ChangeReplaced   ChangeState = "replaced"   // a later change of the journal is in effect
	ChangeGone       ChangeState = "gone"       // the place no longer exists
	ChangeUnreadable ChangeState = "unreadable" // the value cannot be read now
	ChangeElsewhere  ChangeState = "elsewhere"  // the value belongs to another network namespace
	ChangeRebooted   ChangeState = "rebooted"   // a restart of the machine undid it
)

// Status is an entry of the journal with its state.
type Status struct {
	Entry
	Now   string // "" if it cannot be read
	State ChangeState
}

// StatusOf compares the machine with what was applied.
func StatusOf(ctx context.Context, m *Machine, j *Journal) []Status {
	var list []Status
	entries := j.Entries()
	for i, e := range entries {
		s := Status{Entry: e}
		s.Now, s.State, _ = changeState(ctx, m, j, &e) // the state stands for the error
		for _, later := range entries[i+1:] {
			if later.Place == e.Place && later.NetNS == e.NetNS {
				s.State = ChangeReplaced
			}
		}
		list = append(list, s)
	}
	return list
}

// changeState returns the entry's state and current value. It returns an error too if the
// entry cannot be reverted in that state.
func changeState(ctx context.Context, m *Machine, j *Journal, e *Entry) (now string, s ChangeState, err error) {
	if j.rebooted() && !accessors[e.Kind].outlivesBoot {
		return "", ChangeRebooted, nil
	}
	if e.NetNS != "" && e.NetNS != m.netNS() {
		return "", ChangeElsewhere, fmt.Errorf("%s was set in the network namespace %s: revert it in there; if that namespace is gone, so is the value: remove %s", e.Place, e.NetNS, j.path)
	}
	now, err = m.Read(ctx, e.Place)
	switch {
	case gone(err):
		return "", ChangeGone, nil
	case err != nil:
		return "", ChangeUnreadable, err
	case e.Done && e.Same(now, e.Read):
		return now, ChangeApplied, nil
	case e.Same(now, e.From):
		return now, ChangeReset, nil
	case e.Done:
		return now, ChangeDrifted, nil
	}
	// A crash came before the value was read back: it is the one that was set, which the
	// kernel may have rounded.
	return now, ChangeApplied, nil
}

// gone reports whether err means that a file or an interface no longer exists.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV)
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
	// Gone lists the entries whose place does not exist now: a device that was unplugged, a node's
	// service. They stay in the journal, for the place may come back with its value; with force
	// they are forgotten.
	Gone []Entry
	// Kept lists the entries that somebody else has changed since they were applied.
	// Revert leaves them alone and in the journal.
	Kept   []Status
	Failed []Failure
}

// RevertBy is Revert of the changes of one bench, wherever they are in the journal.
func RevertBy(ctx context.Context, m *Machine, j *Journal, by string) error {
	return revertError(revert(context.WithoutCancel(ctx), m, j, func(_ int, e *Entry) bool { return e.By == by }, false))
}

// Revert restores the values that were changed since the mark, the newest first, and
// removes the journal when no entry is left. It keeps a value that somebody has changed
// since, unless force, and an entry whose place does not exist. What fails on the machine is listed in Reverted and stays in the
// journal, so that Revert can be tried again. A journal error does not stop Revert; every
// value is still restored.
func Revert(ctx context.Context, m *Machine, j *Journal, mark int, force bool) (Reverted, error) {
	return revert(ctx, m, j, func(n int, _ *Entry) bool { return n >= mark }, force)
}

func revert(ctx context.Context, m *Machine, j *Journal, chosen func(n int, e *Entry) bool, force bool) (r Reverted, err error) {
	var noteErr error // the first one
	for n := len(j.entries) - 1; n >= 0; n-- {
		e := j.entries[n]
		if e.Ended != "" || !chosen(n, e) {
			continue
		}
		now, state, err := changeState(ctx, m, j, e)
		if state == ChangeDrifted && !force {
			r.Kept = append(r.Kept, Status{Entry: *e, Now: now, State: state})
			continue
		}
		if state == ChangeGone {
			r.Gone = append(r.Gone, *e)
			if !force {
				continue
			}
		}
		how := ""
		switch state {
		case ChangeRebooted:
			how = endRebooted
		case ChangeReset:
			how = endUntouched
		case ChangeGone:
			how = endGone
		case ChangeApplied, ChangeDrifted:
			if err = writeOld(ctx, m, e); err == nil {
				how = endRestored
				r.Restored = append(r.Restored, *e)
			}
		}
		if err != nil {
			r.Failed = append(r.Failed, Failure{e.Setting, e.Place, err})
			continue
		}
		if err := j.note(line{Step: "ended", N: n, How: how}); err != nil {
			noteErr = cmp.Or(noteErr, err)
			e.Ended = how
		}
	}
	if err := j.end(); err != nil || len(j.entries) > 0 {
		return r, errors.Join(noteErr, err)
	}
	return r, nil // the journal is removed, so what could not be noted does not matter
}

// writeOld restores the entry's old value and reads it back.
func writeOld(ctx context.Context, m *Machine, e *Entry) error {
	if err := m.Write(ctx, e.Place, e.From); err != nil {
		return err
	}
	now, err := m.Read(ctx, e.Place)
	if err == nil && !e.Same(now, e.From) {
		err = fmt.Errorf("set %s back to %s: it is %s", e.Place, e.From, now)
	}
	return err
}
