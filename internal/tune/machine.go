package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/host"
)

// Machine is where settings are read and changed: this machine, the inside of
// a network namespace, or a fixture. Another kind of machine, a node of a
// cluster say, is one more set of these three.
type Machine struct {
	Files    host.FS
	NICs     NICs        // nil: interfaces cannot be asked
	Programs host.Runner // nil: nothing is run
	// Namespace says that the machine is one network namespace: only what a
	// namespace has of its own may be changed; of a machine that is thrown away as well
	// also what its network devices have.
	Namespace, WholeMachine bool
}

// NICs is what ethtool(8) reads and sets.
type NICs interface {
	Rings(nic string) (Rings, error)
	// SetRing sets the ring "rx" or "tx", descriptors.
	SetRing(nic, ring string, size int) error
	// Features are the interface's offloads that can be changed, by the
	// kernel's names, on or off.
	Features(nic string) (map[string]bool, error)
	SetFeature(nic, feature string, on bool) error
}

// Rings are an interface's ring sizes and their limits, descriptors.
type Rings struct{ RX, TX, MaxRX, MaxTX int }

// Read is the value at the place, of a file exactly what it holds but for the
// end of its line. A place that the machine does not have is an
// fs.ErrNotExist.
func (m *Machine) Read(ctx context.Context, p Place) (string, error) {
	w, ok := ways[p.Kind]
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
	w, ok := ways[p.Kind]
	if !ok {
		return unknownKind(p)
	}
	if err := w.write(ctx, m, p.Name, value); err != nil {
		return fmt.Errorf("set %s to %s: %w", p, value, err)
	}
	return nil
}

func unknownKind(p Place) error { return fmt.Errorf("no such kind of place: %s %s", p.Kind, p.Name) }

// errStays says that a write went well and changed nothing.
var errStays = errors.New("the kernel keeps the old value")

// set makes the change and reads it back: now is what the place holds then,
// which the kernel may have rounded or written another way. Unless read, nobody
// knows what the place holds, and err says why.
func (m *Machine) set(ctx context.Context, c Change) (now string, read bool, err error) {
	err = m.Write(ctx, c.Place, c.To)
	now, readErr := m.Read(ctx, c.Place)
	if readErr != nil || !c.Same(now, c.From) {
		return now, readErr == nil, cmp.Or(err, readErr)
	}
	if err == nil {
		err = fmt.Errorf("set %s to %s: %w, %s", c.Place, c.To, errStays, now)
		if c.Kind == Feature { // the kernel remembers the wish, and would fulfil it once the driver can
			err = errors.Join(err, m.Write(ctx, c.Place, c.From))
		}
	}
	return now, true, err
}

// run runs a program to its end; input may be "". A program that is not there
// is a *host.ProgramError.
func (m *Machine) run(ctx context.Context, input string, argv ...string) (string, error) {
	if m.Programs == nil {
		return "", &host.ProgramError{Program: argv[0]}
	}
	out, err := host.Output(ctx, m.Programs, host.Command{Argv: argv, Stdin: strings.NewReader(input)})
	return strings.TrimSpace(string(out)), err
}

// missing says that the program is not installed.
func missing(err error) bool {
	var p *host.ProgramError
	return errors.As(err, &p)
}
