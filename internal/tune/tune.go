// Package tune knows what can be tuned on a machine for its network: one file per
// setting, each with what it buys, which study says so, what it costs and when not to use
// it. Plan reads the machine and changes nothing. Apply writes every old value to a
// journal on disk before it changes the machine; Revert restores from the journal. The
// package ends no process, builds no kernel module and installs nothing. If a setting
// does not apply to the machine, the package says why. Next: all.go lists the settings,
// governor.go is the smallest; journal.go keeps the old values.
package tune

import (
	"errors"
	"fmt"
)

// Scope says what has a value of its own for a setting.
type Scope string

// The scopes.
const (
	ScopeMachine   Scope = "machine"   // one value for the whole machine
	ScopeNamespace Scope = "namespace" // one value for each network namespace, so for each pod
)

// Setting is one thing that can be tuned.
type Setting struct {
	Name    string   `json:"name"`
	Scope   Scope    `json:"scope"`
	Summary string   `json:"summary"`         // what is set to what
	Why     string   `json:"why"`             // what it buys
	Studies []string `json:"studies"`         // publications that set it: 2016, 2018–2020, 2024, kube-ovn
	Source  string   `json:"source"`          // where its meaning is documented
	Cost    string   `json:"cost,omitempty"`  // what it costs
	Avoid   string   `json:"avoid,omitempty"` // when not to use it
	Params  []Param  `json:"-"`
	// Plan reads the machine and returns what the setting would change. It returns a
	// *NotApplicable if the setting does not apply to the machine, or an error of the
	// parameters.
	Plan func(f *Facts, p Params) (Proposal, error) `json:"-"`
}

// Param is one parameter of a setting, with its default.
type Param struct {
	Name    string `json:"name"`
	Default string `json:"default"`
	Help    string `json:"help"`
}

// Params holds a setting's parameters by name.
type Params map[string]string

// Proposal is what a setting would do to a machine.
type Proposal struct {
	Changes []Change // in the order in which they are made
	Advice  []string // sentences: what the user must do or consider
}

// Change is one value at one place. From equals To if the machine has the value already.
type Change struct {
	Place
	From string
	To   string
}

// Done reports whether the machine has the value already.
func (c Change) Done() bool { return c.Same(c.From, c.To) }

// NotApplicable says why a setting does not apply to this machine, and what would help if
// anything would.
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

// asNotApplicable returns the *NotApplicable in err's chain, or nil.
func asNotApplicable(err error) *NotApplicable {
	var n *NotApplicable
	if errors.As(err, &n) {
		return n
	}
	return nil
}
