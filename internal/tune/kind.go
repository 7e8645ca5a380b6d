package tune

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Kind is a way of reading and writing a value.
type Kind string

// The kinds of places.
const (
	File    Kind = "file"    // a file of /proc or /sys; the name is its path
	Mask    Kind = "mask"    // such a file that holds a mask of CPUs
	Ring    Kind = "ring"    // a ring size of an interface, ethtool -g: "eth0 rx", descriptors
	Feature Kind = "feature" // an offload of an interface, ethtool -k: "eth0 rx-gro", on or off
	Service Kind = "service" // a service of systemd: active or inactive
	Tuned   Kind = "tuned"   // the profile of tuned-adm; "off" is none
	Notrack Kind = "notrack" // ports that connection tracking passes by; "none" is none
)

// way is what the package knows of a kind.
type way struct {
	title string // of a place; NAME stands for its name
	read  func(ctx context.Context, m *Machine, name string) (string, error)
	write func(ctx context.Context, m *Machine, name, value string) error
	// perNetNS says that every network namespace has values of its own. Of a file its
	// path says so.
	perNetNS bool
	// outlivesBoot says that the machine has the value again after it was started anew.
	outlivesBoot bool
	// ethtool is the option of ethtool(8) that sets the value, profile the key of the
	// values in a profile of tuned. Only the kinds of interfaces have them: the name of
	// their places is "eth0 rx".
	ethtool, profile string
}

// ways has a row for each kind.
var ways = map[Kind]way{
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

var errNoNICs = fmt.Errorf("interfaces cannot be asked here: %w", fs.ErrNotExist)

// interfaceOf splits the name of an interface's place.
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
