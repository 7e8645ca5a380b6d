package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/host"
)

// Machine is where settings are read and changed: this machine, the inside of a network
// namespace, or a fixture.
type Machine struct {
	Files    host.FS
	NICs     NICs        // nil: the machine's interfaces cannot be read or set
	Programs host.Runner // nil: no program is run
	// In a Namespace only settings that each namespace has for itself may be changed. If
	// the WholeMachine is disposable, settings of its network devices may be changed too.
	Namespace, WholeMachine bool
}

// NICs is what ethtool(8) reads and sets.
type NICs interface {
	Rings(nic string) (Rings, error)
	// SetRing sets the ring "rx" or "tx", descriptors.
	SetRing(nic, ring string, size int) error
	// Features returns the interface's offloads that can be changed, by the kernel's
	// names: true if on.
	Features(nic string) (map[string]bool, error)
	SetFeature(nic, feature string, on bool) error
}

// Rings holds an interface's ring sizes and their limits, in descriptors.
type Rings struct{ RX, TX, MaxRX, MaxTX int }

// Read returns the value at the place; for a file its text without the last line end. The
// error wraps fs.ErrNotExist if the machine does not have the place.
func (m *Machine) Read(ctx context.Context, p Place) (string, error) {
	w, ok := accessors[p.Kind]
	if !ok {
		return "", unknownKind(p)
	}
	value, err := w.read(ctx, m, p.Name)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", p, err)
	}
	return value, nil
}

// Write sets the value at the place.
func (m *Machine) Write(ctx context.Context, p Place, value string) error {
	w, ok := accessors[p.Kind]
	if !ok {
		return unknownKind(p)
	}
	if err := w.write(ctx, m, p.Name, value); err != nil {
		return fmt.Errorf("set %s to %s: %w", p, value, err)
	}
	return nil
}

func unknownKind(p Place) error { return fmt.Errorf("no such kind of place: %s %s", p.Kind, p.Name) }

// errUnchanged means that a write succeeded and the value did not change.
var errUnchanged = errors.New("the write succeeded, but the value did not change")

// set makes the change and reads the value back. now is the value then; the kernel may
// have rounded it or changed its notation. read is false if the value could not be read
// back; err says why.
func (m *Machine) set(ctx context.Context, c Change) (now string, read bool, err error) {
	err = m.Write(ctx, c.Place, c.To)
	now, readErr := m.Read(ctx, c.Place)
	if readErr != nil || !c.Same(now, c.From) {
		return now, readErr == nil, cmp.Or(err, readErr)
	}
	if err == nil {
		err = fmt.Errorf("set %s to %s: %w from %s", c.Place, c.To, errUnchanged, now)
		if c.Kind == Feature { // the kernel would set the feature later, as soon as the driver can
			err = errors.Join(err, m.Write(ctx, c.Place, c.From))
		}
	}
	return now, true, err
}

// run runs a program with the input and returns its output. It returns a
// *host.ProgramError if the program is not installed.
func (m *Machine) run(ctx context.Context, input string, argv ...string) (string, error) {
	if m.Programs == nil {
		return "", &host.ProgramError{Program: argv[0]}
	}
	out, err := host.Output(ctx, m.Programs, host.Command{Argv: argv, Stdin: strings.NewReader(input)})
	return strings.TrimSpace(string(out)), err
}

// missing reports whether err means that a program is not installed.
func missing(err error) bool {
	var p *host.ProgramError
	return errors.As(err, &p)
}
