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

// Failure is a change that could not be made or taken back.
type Failure struct {
	Setting string
	Place   Place
	Err     error // names the place
}

func (f Failure) Error() string { return fmt.Sprintf("setting %s: %v", f.Setting, f.Err) }

func (f Failure) Unwrap() error { return f.Err }

// BootID tells one start of the machine from the next; "" where it does not
// say.
func (m *Machine) BootID() string {
	b, err := m.Files.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return tidy(string(b))
}

// netNS is the identity of the machine's network namespace; "" where it does
// not say.
func (m *Machine) netNS() string {
	link, _ := m.Files.Readlink("/proc/self/ns/net") // none is no identity
	return link
}

// perNetNS says that every network namespace has a value of its own there.
func (p Place) perNetNS() bool {
	return ways[p.Kind].perNetNS || strings.HasPrefix(p.Name, "/proc/sys/net/") || strings.HasPrefix(p.Name, netClass)
}

// Apply makes the changes of the plan that are not done yet, each after its
// old value is in the journal. Where j holds changes already, these come on
// top. It goes on after a change that fails, with what the later settings are
// without it, and gives the changes that were made and those that failed. A journal in which nothing holds is removed.
// When ctx ends, the change under way is made and read back, and no other is begun.
// Errors: the journal, after which nothing more is changed; ctx's.
func Apply(ctx context.Context, m *Machine, j *Journal, items []Item) (made []Change, failed []Failure, err error) {
	if j.rebooted() && len(j.Entries()) > 0 {
		return nil, nil, errors.New("the machine was started anew since settings were applied; run `cnibench tune revert` first, which tidies up")
	}
	defer func() { err = errors.Join(err, j.end()) }()
	asExpected := true
	for _, item := range items {
		if !asExpected && item.unaided != nil {
			item = *item.unaided
		}
		before := len(failed)
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
		if len(failed) > before && item.Setting.Effect != nil {
			asExpected = false
		}
	}
	return made, failed, nil
}

// journalError is that of the journal itself, after which nothing is changed.
type journalError struct{ error }

func (e *journalError) Unwrap() error { return e.error }

// apply makes one change and gives it as the machine then has it; none where
// nothing was to be done or it failed. The old value is read anew: an earlier
// change may have moved it.
func apply(ctx context.Context, m *Machine, j *Journal, setting string, c Change) (Change, error) {
	var none Change
	var err error
	if c.From, err = m.Read(ctx, c.Place); err != nil || c.Done() {
		return none, err
	}
	n := len(j.entries)
	intent := &Entry{Setting: setting, Place: c.Place, From: c.From, To: c.To, Written: time.Now().UTC().Truncate(time.Second)}
	if c.perNetNS() {
		intent.NetNS = m.netNS()
	}
	if err := j.note(line{Step: "intent", N: n, Change: intent}); err != nil {
		return none, &journalError{err}
	}
	now, read, err := m.set(ctx, c)
	step := line{Step: "done", N: n, Read: now} // drift is measured from it, also where the write failed
	if c.Same(now, c.From) {
		step = line{Step: "ended", N: n, How: endUntouched}
	}
	c.To = now
	if err != nil {
		c = none
	}
	if read { // without "done" the value is ours, whatever it is
		if noteErr := j.note(step); noteErr != nil {
			return c, &journalError{errors.Join(err, noteErr)}
		}
	}
	return c, err
}

// Standing is where an applied change stands.
type Standing string

// The standings.
const (
	StandingApplied    Standing = "applied"    // as it was set
	StandingDrifted    Standing = "drifted"    // somebody has changed it since
	StandingReset      Standing = "reset"      // it has its old value again, or never left it
	StandingReplaced   Standing = "replaced"   // a later change of the journal is on top
	StandingGone       Standing = "gone"       // the place is not there any more
	StandingUnreadable Standing = "unreadable" // it cannot be read now, so nobody knows
	StandingElsewhere  Standing = "elsewhere"  // it is another network namespace's
	StandingRebooted   Standing = "rebooted"   // the machine was started anew, which undid it
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
		s.Now, s.Standing, _ = standing(ctx, m, j, &e) // the standing says it
		for _, later := range entries[i+1:] {
			if later.Place == e.Place && later.NetNS == e.NetNS {
				s.Standing = StandingReplaced
			}
		}
		list = append(list, s)
	}
	return list
}

// standing is where the entry stands; an error comes with those standings from
// which it cannot be taken back.
func standing(ctx context.Context, m *Machine, j *Journal, e *Entry) (now string, s Standing, err error) {
	if j.rebooted() && !ways[e.Kind].outlivesBoot {
		return "", StandingRebooted, nil
	}
	if e.NetNS != "" && e.NetNS != m.netNS() {
		return "", StandingElsewhere, fmt.Errorf("%s was set in the network namespace %s: revert it in there; if that is gone, so is the value: remove %s", e.Place, e.NetNS, j.path)
	}
	now, err = m.Read(ctx, e.Place)
	switch {
	case gone(err):
		return "", StandingGone, nil
	case err != nil:
		return "", StandingUnreadable, err
	case e.Done && e.Same(now, e.Read):
		return now, StandingApplied, nil
	case e.Same(now, e.From):
		return now, StandingReset, nil
	case e.Done:
		return now, StandingDrifted, nil
	}
	// A crash came before it was read back: the value is the one that was set,
	// as the kernel has rounded it.
	return now, StandingApplied, nil
}

// gone says that what was to be read is not there any more, an interface too.
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
	// Gone are those whose place is not there any more.
	Gone []Entry
	// Kept are those that somebody else has changed since they were applied:
	// they are left alone and stay in the journal.
	Kept   []Status
	Failed []Failure
}

// Revert takes the changes since the mark back, the newest first, and removes
// the journal when none is left. A value that somebody has changed since is
// kept, unless force. Errors: the journal, which keeps no value from being
// restored; what fails on the machine is in Reverted and stays in the journal,
// so that it can be tried again.
func Revert(ctx context.Context, m *Machine, j *Journal, mark int, force bool) (r Reverted, err error) {
	var noteErr error // the first stands for all
	for n := len(j.entries) - 1; n >= mark; n-- {
		e := j.entries[n]
		if e.Ended != "" {
			continue
		}
		now, standing, err := standing(ctx, m, j, e)
		if standing == StandingDrifted && !force {
			r.Kept = append(r.Kept, Status{Entry: *e, Now: now, Standing: standing})
			continue
		}
		how := ""
		switch standing {
		case StandingRebooted:
			how = endRebooted
		case StandingReset:
			how = endUntouched
		case StandingGone:
			how = endGone
			r.Gone = append(r.Gone, *e)
		case StandingApplied, StandingDrifted:
			if err = restore(ctx, m, e); err == nil {
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
	return r, nil // the journal is removed, and with it what could not be noted
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
