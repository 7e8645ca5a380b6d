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

// Request is what is to be set inside a namespace that is thrown away
// afterwards, as a program inside of it reads it.
type Request struct {
	Settings []Choice `json:"settings,omitempty"`
	// Sysctls are the user's own, by key.
	Sysctls map[string]string `json:"sysctls,omitempty"`
	// WholeMachine says that the machine is thrown away as well: what only its first
	// network namespace has is set, too.
	WholeMachine bool `json:"whole_machine,omitempty"`
	// Apart plans every setting as if it were the only one.
	Apart bool `json:"-"`
}

// Answer is what came of it.
type Answer struct {
	Made int               `json:"made"`           // values that are different now
	Left map[string]string `json:"left,omitempty"` // settings that changed nothing here, with the reason
	Mark int               `json:"mark,omitempty"` // of the journal before, for TakeBack
}

// Names are the settings of the request, in order.
func (r Request) Names() []string {
	var names []string
	for _, c := range r.Settings {
		names = append(names, c.Setting)
	}
	return append(names, slices.Sorted(maps.Keys(r.Sysctls))...)
}

// Wanted looks the request's settings up.
func (r Request) Wanted() ([]Wanted, error) {
	var wanted []Wanted
	for _, c := range r.Settings {
		s, err := Lookup(c.Setting)
		if err != nil {
			return nil, err
		}
		if _, err := s.complete(c.Params); err != nil {
			return nil, err
		}
		if r.Apart {
			s.Effect = nil
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
	wanted, err := r.Wanted()
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

// Of is the part of the request whose settings have the scope. Errors: those of
// Wanted.
func (r Request) Of(scope Scope) (Request, error) {
	part := Request{Sysctls: map[string]string{}}
	wanted, err := r.Wanted()
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

// SetNamespace sets what the request asks for in a namespace. There is no
// journal: the namespace goes away with all of it. A value that is the whole
// machine's, and therefore cannot be written from inside, is a reason.
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
		made, left := 0, item.Left()
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

// setAll makes the changes that the kernel allows; denied is why it allows
// none.
func setAll(ctx context.Context, m *Machine, item Item) (made int, denied string, err error) {
	for _, c := range item.Pending() {
		_, _, err := m.set(ctx, c)
		switch {
		case errors.Is(err, errStays):
			denied = err.Error()
		case (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)) && c.sysctlKey() != "":
			denied = noneOfItsOwn
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
