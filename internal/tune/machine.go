package tune

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
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
	// namespace has of its own may be changed.
	Namespace bool
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
	value, err := m.read(ctx, p)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", p, err)
	}
	return value, nil
}

// Write sets the value at the place.
func (m *Machine) Write(ctx context.Context, p Place, value string) error {
	if err := m.write(ctx, p, value); err != nil {
		return fmt.Errorf("set %s to %s: %w", p, value, err)
	}
	return nil
}

// errStays says that a write went well and changed nothing.
var errStays = errors.New("the kernel keeps the old value")

// set makes the change and reads it back: now is what the place holds then,
// which the kernel may have rounded or written another way. Unless moved, it is
// known to hold its old value.
func (m *Machine) set(ctx context.Context, c Change) (now string, moved bool, err error) {
	err = m.Write(ctx, c.Place, c.To)
	now, readErr := m.Read(ctx, c.Place)
	if readErr != nil || !c.Same(now, c.From) {
		return now, true, cmp.Or(err, readErr)
	}
	if err == nil {
		err = fmt.Errorf("set %s to %s: %w, %s", c.Place, c.To, errStays, now)
	}
	return now, false, err
}

var errNoNICs = fmt.Errorf("interfaces cannot be asked here: %w", fs.ErrNotExist)

func (m *Machine) read(ctx context.Context, p Place) (string, error) {
	switch p.Kind {
	case File, Mask:
		b, err := m.Files.ReadFile(p.Name)
		return strings.TrimSuffix(string(b), "\n"), err
	case Ring, Feature:
		nic, what, ok := strings.Cut(p.Name, " ")
		if m.NICs == nil || !ok {
			return "", errNoNICs
		}
		if p.Kind == Ring {
			r, err := m.NICs.Rings(nic)
			return strconv.Itoa(map[string]int{"rx": r.RX, "tx": r.TX}[what]), err
		}
		features, err := m.NICs.Features(nic)
		if err != nil {
			return "", err
		}
		on, known := features[what]
		if !known {
			return "", fmt.Errorf("%s cannot change %s: %w", nic, what, fs.ErrNotExist)
		}
		return onOff(on), nil
	case Service:
		return m.serviceState(ctx, p.Name)
	case Tuned:
		return m.tunedProfile(ctx)
	case Notrack:
		return m.notrackPorts(ctx)
	}
	return "", fmt.Errorf("no such kind of place: %s", p.Kind)
}

func (m *Machine) write(ctx context.Context, p Place, value string) error {
	switch p.Kind {
	case File, Mask:
		return m.Files.WriteFile(p.Name, []byte(value+"\n"))
	case Ring, Feature:
		nic, what, ok := strings.Cut(p.Name, " ")
		if m.NICs == nil || !ok {
			return errNoNICs
		}
		if p.Kind == Feature {
			return m.NICs.SetFeature(nic, what, value == "on")
		}
		size, err := strconv.Atoi(value)
		if err != nil {
			return fmt.Errorf("ring size: %w", err)
		}
		return m.NICs.SetRing(nic, what, size)
	case Service:
		return m.setService(ctx, p.Name, value)
	case Tuned:
		return m.setTunedProfile(ctx, value)
	case Notrack:
		return m.setNotrackPorts(ctx, value)
	}
	return fmt.Errorf("no such kind of place: %s", p.Kind)
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// run runs a program to its end; input may be "". A program that is not there
// is a *host.ProgramError.
func (m *Machine) run(ctx context.Context, input string, argv ...string) (string, error) {
	if m.Programs == nil {
		return "", &host.ProgramError{Program: argv[0]}
	}
	var out bytes.Buffer
	p, err := m.Programs.Start(ctx, host.Command{Argv: argv, Stdin: strings.NewReader(input), Stdout: &out})
	if err != nil {
		return "", err
	}
	err = p.Wait()
	return strings.TrimSpace(out.String()), err
}

// missing says that the program is not installed.
func missing(err error) bool {
	var p *host.ProgramError
	return errors.As(err, &p)
}
