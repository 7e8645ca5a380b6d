package tune

import (
	"errors"
	"slices"
)

// State is what a plan found about a setting.
type State string

// The states.
const (
	StateChange        State = "change"         // the setting would change something
	StateDone          State = "done"           // the machine has all values already
	StateAdvice        State = "advice"         // there is only advice for the user
	StateNotApplicable State = "not-applicable" // the setting does not apply to this machine
	StateUnreadable    State = "unreadable"     // a value cannot be read
)

// Item is a setting in a plan.
type Item struct {
	Setting Setting
	State   State
	Proposal
	Reason string // why it is not applicable or unreadable
	Remedy string
}

// Pending returns the changes that are not done yet.
func (i Item) Pending() []Change {
	return slices.DeleteFunc(slices.Clone(i.Changes), Change.Done)
}

// WhyNothing returns why the setting changes nothing; "" if it changes something.
func (i Item) WhyNothing() string {
	switch i.State {
	case StateChange:
		return ""
	case StateDone:
		return "the machine has this value already"
	case StateAdvice:
		return "cnibench cannot set it here"
	}
	return i.Reason
}

// Wanted is a setting to plan, with its parameters.
type Wanted struct {
	Setting Setting
	Params  Params
}

// Plan reads the machine and returns what each setting would change, in the order of All;
// the user's own sysctls come last. It changes nothing. If a setting cannot be read, its
// item holds the error. Plan returns an error if parameters are wrong.
func Plan(f *Facts, wanted []Wanted) ([]Item, error) {
	order := map[string]int{}
	for i, s := range All() {
		order[s.Name] = i + 1
	}
	position := func(w Wanted) int {
		if at := order[w.Setting.Name]; at > 0 {
			return at
		}
		return len(order) + 1
	}
	wanted = slices.Clone(wanted)
	slices.SortStableFunc(wanted, func(a, b Wanted) int { return position(a) - position(b) })
	var items []Item
	for _, w := range wanted {
		item, err := planOne(f, w)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

func planOne(f *Facts, w Wanted) (Item, error) {
	item := Item{Setting: w.Setting}
	params, err := w.Setting.complete(w.Params)
	if err != nil {
		return item, err
	}
	if f.m.Namespace && w.Setting.Scope != ScopeNamespace && !(f.m.WholeMachine && w.Setting.NeedsNIC()) {
		item.State, item.Reason = StateNotApplicable, notPerNamespace
		return item, nil
	}
	item.Proposal, err = w.Setting.Plan(f, params)
	var broken *unreadable
	switch n := asNotApplicable(err); {
	case n != nil:
		item.State, item.Reason, item.Remedy = StateNotApplicable, n.Reason, n.Remedy
	case errors.As(err, &broken):
		item.State, item.Proposal, item.Reason = StateUnreadable, Proposal{}, err.Error()
	case err != nil:
		return item, err
	case len(item.Pending()) > 0:
		item.State = StateChange
	case len(item.Changes) > 0:
		item.State = StateDone
	default:
		item.State = StateAdvice
	}
	return item, nil
}

// unreadable is a fault of the machine, not of the request.
type unreadable struct{ error }

func (e *unreadable) Unwrap() error { return e.error }

const notPerNamespace = "the whole machine has one value, a namespace has none of its own"
