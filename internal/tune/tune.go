// Package tune knows what about a machine can be tuned for its network: one
// file per setting, each with what it buys, which study says so, what it costs
// and when to leave it alone. It plans without changing anything, applies
// through a journal that is on the disk before the machine is touched, and
// reverts from it. It ends no process, builds no kernel module, installs
// nothing, and says why where a setting has no place on the machine. Next:
// all.go lists the settings, governor.go is the smallest; journal.go is what
// brings the old values back.
package tune

import (
	"errors"
	"fmt"
)

// Scope is whose a setting is.
type Scope string

// The scopes.
const (
	ScopeMachine   Scope = "machine"   // one value for the whole machine
	ScopeNamespace Scope = "namespace" // every network namespace, so every pod, has its own
)

// Setting is one thing that can be tuned.
type Setting struct {
	Name    string   `json:"name"`
	Scope   Scope    `json:"scope"`
	Summary string   `json:"summary"`         // what is set to what
	Why     string   `json:"why"`             // what it buys
	Studies []string `json:"studies"`         // the publications that set it: 2016, 2018–2020, 2024, kube-ovn
	Source  string   `json:"source"`          // where its meaning is written down
	Cost    string   `json:"cost,omitempty"`  // what it takes in exchange
	Avoid   string   `json:"avoid,omitempty"` // when not to use it
	Params  []Param  `json:"-"`
	// Never, where set, is why the setting of a study is offered on no machine;
	// it has no Plan.
	Never string `json:"-"`
	// Plan reads the machine and says what would be changed. Errors: a
	// *NotApplicable where the setting has no place here, or a fault of the
	// parameters.
	Plan func(f *Facts, p Params) (Proposal, error) `json:"-"`
	// Effect, where set, is the machine as later settings of the same plan find
	// it when this one is set; it leaves f alone.
	Effect func(f Facts) *Facts `json:"-"`
}

// Param is one parameter of a setting, with its default.
type Param struct {
	Name    string `json:"name"`
	Default string `json:"default"`
	Help    string `json:"help"`
}

// Params are a setting's parameters by name, complete with the defaults.
type Params map[string]string

// Proposal is what a setting would do to a machine.
type Proposal struct {
	Changes []Change // in the order in which they are made
	Advice  []string // what cnibench leaves to the reader, as sentences
}

// Change is one value at one place; From and To are the same where the machine
// already has it.
type Change struct {
	Place
	From string
	To   string
}

// Done says that the machine has the value already.
func (c Change) Done() bool { return c.Same(c.From, c.To) }

// NotApplicable says why a setting has no place on this machine, and what
// would help if anything would.
type NotApplicable struct {
	Reason string
	Remedy string
}

func (e *NotApplicable) Error() string {
	if e.Remedy == "" {
		return e.Reason
	}
	return e.Reason + "; " + e.Remedy
}

func notApplicable(format string, args ...any) error {
	return &NotApplicable{Reason: fmt.Sprintf(format, args...)}
}

// inapplicable is the *NotApplicable in err's chain, or nil.
func inapplicable(err error) *NotApplicable {
	var n *NotApplicable
	if errors.As(err, &n) {
		return n
	}
	return nil
}
