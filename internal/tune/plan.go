package tune

import (
	"errors"
	"slices"
)

// State is what became of a setting in a plan.
type State string

// The states.
const (
	StateChange        State = "change"         // something would be changed
	StateDone          State = "done"           // the machine has it already
	StateAdvice        State = "advice"         // something for the reader to do
	StateNotApplicable State = "not-applicable" // it has no place on this machine
	StateUnreadable    State = "unreadable"     // the machine does not let it be read
	StateNever         State = "never"          // it is offered on no machine
)

// Item is a setting in a plan.
type Item struct {
	Setting Setting
	State   State
	Proposal
	Reason string // of not-applicable, unreadable and never
	Remedy string

	// unaided is the setting on the machine as it is; nil where no setting
	// before it has an Effect.
	unaided *Item
}

// Pending are the changes that are not done yet.
func (i Item) Pending() []Change {
	return slices.DeleteFunc(slices.Clone(i.Changes), Change.Done)
}

// Left is why nothing of the setting is to be set, "" where something is.
func (i Item) Left() string {
	switch i.State {
	case StateChange:
		return ""
	case StateDone:
		return "it is so already"
	case StateAdvice:
		return "it is nothing that can be set"
	}
	return i.Reason
}

// Wanted is a setting with its parameters, to be planned.
type Wanted struct {
	Setting Setting
	Params  Params
}

// Plan reads the machine and says for each setting what it would change. It
// changes nothing. A setting that cannot be read is its item with the error.
// Errors: parameters that are wrong.
func Plan(f *Facts, wanted []Wanted) ([]Item, error) {
	order := map[string]int{}
	for i, s := range All() {
		order[s.Name] = i + 1
	}
	position := func(w Wanted) int {
		if at := order[w.Setting.Name]; at > 0 {
			return at
		}
		return len(order) + 1 // the user's own come last
	}
	wanted = slices.Clone(wanted)
	slices.SortStableFunc(wanted, func(a, b Wanted) int { return position(a) - position(b) })
	var items []Item
	expected := f
	for _, w := range wanted {
		item, err := planOne(expected, w)
		if err != nil {
			return nil, err
		}
		if expected != f {
			unaided, err := planOne(f, w)
			if err != nil {
				return nil, err
			}
			item.unaided = &unaided
		}
		items = append(items, item)
		if item.State == StateChange && w.Setting.Effect != nil {
			expected = w.Setting.Effect(*expected)
		}
	}
	return items, nil
}

func planOne(f *Facts, w Wanted) (Item, error) {
	item := Item{Setting: w.Setting}
	params, err := w.Setting.complete(w.Params)
	if err != nil {
		return item, err
	}
	if w.Setting.Never != "" {
		item.State, item.Reason = StateNever, w.Setting.Never
		return item, nil
	}
	if f.m.Namespace && w.Setting.Scope != ScopeNamespace && !(f.m.WholeMachine && w.Setting.NeedsNIC()) {
		item.State, item.Reason = StateNotApplicable, noneOfItsOwn
		return item, nil
	}
	item.Proposal, err = w.Setting.Plan(f, params)
	var broken *unreadable
	switch n := inapplicable(err); {
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

const noneOfItsOwn = "it is the whole machine's, a namespace has none of its own"
