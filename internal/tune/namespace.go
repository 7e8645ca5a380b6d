package tune

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"syscall"
)

// Request says what to set. A program inside a disposable namespace, or on a node, reads it
// as JSON.
type Request struct {
	Settings []Choice `json:"settings,omitempty"`
	// Sysctls holds the user's own kernel parameters, by key.
	Sysctls map[string]string `json:"sysctls,omitempty"`
	// WholeMachine says that the machine is disposable too, so that values which only its
	// first network namespace has may be set.
	WholeMachine bool `json:"whole_machine,omitempty"`
}

// Answer is the result of a Request.
type Answer struct {
	Made int               `json:"made"`           // values that have changed
	Left map[string]string `json:"left,omitempty"` // settings that changed nothing here, with the reason
	Mark int               `json:"mark,omitempty"` // the journal's mark before the request, for RevertTo
}

// Names returns the names of the request's settings, in order.
func (r Request) Names() []string {
	var names []string
	for _, c := range r.Settings {
		names = append(names, c.Setting)
	}
	return append(names, slices.Sorted(maps.Keys(r.Sysctls))...)
}

// LookUp looks up the request's settings. It returns an error if a name or parameter is wrong.
func (r Request) LookUp() ([]Wanted, error) {
	var wanted []Wanted
	for _, c := range r.Settings {
		s, err := Lookup(c.Setting)
		if err != nil {
			return nil, err
		}
		if _, err := s.complete(c.Params); err != nil {
			return nil, err
		}
		wanted = append(wanted, Wanted{Setting: s, Params: c.Params})
	}
	for _, key := range slices.Sorted(maps.Keys(r.Sysctls)) {
		s, err := Sysctl(key, r.Sysctls[key])
		if err != nil {
			return nil, err
		}
		wanted = append(wanted, Wanted{Setting: s})
	}
	return wanted, nil
}

// plan plans the request for the machine.
func (r Request) plan(ctx context.Context, m *Machine) (*Facts, []Item, error) {
	wanted, err := r.LookUp()
	if err != nil {
		return nil, nil, err
	}
	f, err := Gather(ctx, m, nil)
	if err != nil {
		return nil, nil, err
	}
	items, err := Plan(f, wanted)
	return f, items, err
}

// Of returns the part of the request whose settings have the scope. Its errors are those of
// Wanted.
func (r Request) Of(scope Scope) (Request, error) {
	part := Request{Sysctls: map[string]string{}}
	wanted, err := r.LookUp()
	for i, w := range wanted {
		switch {
		case w.Setting.Scope != scope:
		case i < len(r.Settings):
			part.Settings = append(part.Settings, r.Settings[i])
		default:
			part.Sysctls[w.Setting.Name] = r.Sysctls[w.Setting.Name]
		}
	}
	return part, err
}

// ReadRequest decodes a request.
func ReadRequest(r io.Reader) (Request, error) {
	var req Request
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(&req); err != nil {
		return req, fmt.Errorf("request: %w", err)
	}
	return req, nil
}

// SetNamespace carries out the request in a namespace. It keeps no journal, because the
// values end with the namespace. If a value belongs to the whole machine and cannot be
// written from inside, the answer's Left holds the reason.
func SetNamespace(ctx context.Context, m *Machine, req Request) (Answer, error) {
	a := Answer{Left: map[string]string{}}
	if !m.Namespace {
		return a, errors.New("tune: not inside a namespace")
	}
	f, items, err := req.plan(ctx, m)
	if err != nil {
		return a, err
	}
	for _, item := range items {
		made, left := 0, item.WhyNothing()
		if left == "" {
			if made, left, err = setAll(ctx, m, item); err != nil {
				return a, fmt.Errorf("%s: %w", item.Setting.Name, err)
			}
		}
		if made == 0 {
			a.Left[item.Setting.Name] = left
		}
		a.Made += made
	}
	return a, f.awaitLinks(ctx)
}

// setAll makes the changes that the kernel allows. denied is why it refused one.
func setAll(ctx context.Context, m *Machine, item Item) (made int, denied string, err error) {
	for _, c := range item.Pending() {
		_, _, err := m.set(ctx, c)
		switch {
		case errors.Is(err, errUnchanged):
			denied = err.Error()
		case (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)) && c.sysctlKey() != "":
			denied = notPerNamespace
		case errors.Is(err, fs.ErrPermission):
			denied = "the kernel lets only the machine's own root set it: run it as root"
		case err != nil:
			return made, denied, err
		default:
			made++
		}
	}
	return made, denied, nil
}
