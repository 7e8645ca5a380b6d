package tune

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Kind is a kind of value: it says how to read and write it.
type Kind string

// The kinds of places.
const (
	File    Kind = "file"    // a file of /proc or /sys; the place's name is its path
	Mask    Kind = "mask"    // a file of /proc or /sys that holds a mask of CPUs
	Ring    Kind = "ring"    // a ring size of an interface, ethtool -g: "eth0 rx", descriptors
	Feature Kind = "feature" // an offload of an interface, ethtool -k: "eth0 rx-gro", on or off
	Service Kind = "service" // a systemd service: active or inactive
	Tuned   Kind = "tuned"   // the profile of tuned-adm; "off" if there is none
	Notrack Kind = "notrack" // ports without connection tracking; "none" if there is no such port
)

// accessor reads and writes the values of a kind.
type accessor struct {
	title string // how a place is printed; NAME is replaced by its name
	read  func(ctx context.Context, m *Machine, name string) (string, error)
	write func(ctx context.Context, m *Machine, name, value string) error
	// perNetNS is true if every network namespace has values of its own. For a file its
	// path decides.
	perNetNS bool
	// outlivesBoot is true if the value is still set after a restart of the machine.
	outlivesBoot bool
	// ethtool is the option of ethtool(8) that sets the value; profile is the key of the
	// values in a profile of tuned. Only the kinds for interfaces have them; the names of
	// their places have the form "eth0 rx".
	ethtool, profile string
}

// accessors has one row for each kind.
var accessors = map[Kind]accessor{
	File: {title: "NAME", read: readFile, write: writeFile},
	Mask: {title: "NAME", read: readFile, write: writeFile},
	Ring: {
		title: "NAME ring", perNetNS: true, ethtool: "-G", profile: "ring",
		read: func(_ context.Context, m *Machine, name string) (string, error) {
			nic, ring, err := m.interfaceOf(name)
			if err != nil {
				return "", err
			}
			r, err := m.NICs.Rings(nic)
			return strconv.Itoa(map[string]int{"rx": r.RX, "tx": r.TX}[ring]), err
		},
		write: func(_ context.Context, m *Machine, name, value string) error {
			nic, ring, err := m.interfaceOf(name)
			if err != nil {
				return err
			}
			size, err := strconv.Atoi(value)
			if err != nil {
				return fmt.Errorf("ring size: %w", err)
			}
			return m.NICs.SetRing(nic, ring, size)
		},
	},
	Feature: {
		title: "offload NAME", perNetNS: true, ethtool: "-K", profile: "features",
		read: func(_ context.Context, m *Machine, name string) (string, error) {
			nic, feature, err := m.interfaceOf(name)
			if err != nil {
				return "", err
			}
			features, err := m.NICs.Features(nic)
			if err != nil {
				return "", err
			}
			on, known := features[feature]
			if !known {
				return "", fmt.Errorf("%s cannot change %s: %w", nic, feature, fs.ErrNotExist)
			}
			return onOff(on), nil
		},
		write: func(_ context.Context, m *Machine, name, value string) error {
			nic, feature, err := m.interfaceOf(name)
			if err != nil {
				return err
			}
			return m.NICs.SetFeature(nic, feature, value == "on")
		},
	},
	Service: {
		title: "service NAME",
		read:  func(ctx context.Context, m *Machine, name string) (string, error) { return m.serviceState(ctx, name) },
		write: func(ctx context.Context, m *Machine, name, value string) error {
			return m.setService(ctx, name, value)
		},
	},
	Tuned: {
		title: "tuned profile", outlivesBoot: true,
		read:  func(ctx context.Context, m *Machine, _ string) (string, error) { return m.tunedProfile(ctx) },
		write: func(ctx context.Context, m *Machine, _, value string) error { return m.setTunedProfile(ctx, value) },
	},
	Notrack: {
		title: "ports without connection tracking", perNetNS: true,
		read:  func(ctx context.Context, m *Machine, _ string) (string, error) { return m.notrackPorts(ctx) },
		write: func(ctx context.Context, m *Machine, _, value string) error { return m.setNotrackPorts(ctx, value) },
	},
}

func readFile(_ context.Context, m *Machine, name string) (string, error) {
	b, err := m.Files.ReadFile(name)
	return strings.TrimSuffix(string(b), "\n"), err
}

func writeFile(_ context.Context, m *Machine, name, value string) error {
	return m.Files.WriteFile(name, []byte(value+"\n"))
}

var errNoNICs = fmt.Errorf("this machine's interfaces cannot be read: %w", fs.ErrNotExist)

// interfaceOf splits a place's name such as "eth0 rx" into the interface and the rest.
func (m *Machine) interfaceOf(name string) (nic, what string, err error) {
	nic, what, ok := strings.Cut(name, " ")
	if m.NICs == nil || !ok {
		return "", "", errNoNICs
	}
	return nic, what, nil
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
