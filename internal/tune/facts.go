package tune

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// Facts is what settings are planned from: a machine, and what was read from it once.
type Facts struct {
	ctx context.Context
	m   *Machine

	Topology *Topology
	// NICs are the interfaces to tune: those of the default route unless the user named
	// others; inside a namespace all that packets arrive on.
	NICs []NIC
	// Path are the machine's other devices that pods' packets pass: tunnels, bridges and the
	// ends of pods' devices. None if the user named interfaces, and none inside a namespace,
	// all of whose devices are in NICs.
	Path []NIC
}

// Gather reads the machine. nics names the interfaces to tune. Without names, Gather takes
// the interface of the default route (for a bond, bridge or VLAN, its member devices) and
// the other devices of the pods' path. It returns an error if an interface does not exist.
func Gather(ctx context.Context, m *Machine, nics []string) (*Facts, error) {
	f := &Facts{ctx: ctx, m: m}
	var err error
	if f.Topology, err = readTopology(m.Files); err != nil {
		return nil, err
	}
	named := len(nics) > 0
	if !named {
		if nics, err = f.defaultNICs(); err != nil {
			return nil, err
		}
	}
	for _, name := range nics {
		nic, err := readNIC(m.Files, name)
		if err != nil {
			return nil, err
		}
		f.NICs = append(f.NICs, nic)
	}
	if !named && !m.Namespace {
		f.Path = f.path()
	}
	return f, nil
}

func (f *Facts) defaultNICs() ([]string, error) {
	if f.m.Namespace {
		return f.carriers()
	}
	for _, table := range []struct {
		path  string
		parse func(io.Reader) (string, error)
	}{{"/proc/net/route", defaultNIC}, {"/proc/net/ipv6_route", defaultNIC6}} {
		routes, err := f.m.Files.ReadFile(table.path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		name, err := table.parse(bytes.NewReader(routes))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", table.path, err)
		}
		if name != "" {
			return f.ports(name), nil
		}
	}
	return nil, nil
}

// ports returns the devices that carry an interface's packets: the member devices of a
// bond, bridge or VLAN, else the interface itself.
func (f *Facts) ports(name string) []string {
	const lower = "lower_"
	var ports []string
	seen := map[string]bool{}
	var descend func(name string)
	descend = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		if _, err := f.m.Files.Readlink(netClass + name + "/device"); err == nil {
			ports = append(ports, name)
			return
		}
		entries, _ := f.m.Files.ReadDir(netClass + name) // an error: there are no member devices
		for _, entry := range entries {
			if below, ok := strings.CutPrefix(entry, lower); ok {
				descend(below)
			}
		}
	}
	descend(name)
	if len(ports) == 0 {
		return []string{name}
	}
	return ports
}

// carriers returns the interfaces that packets arrive on. The loopback is not among them,
// nor is a bridge: its packets arrive on its ports.
func (f *Facts) carriers() ([]string, error) {
	all, err := f.m.Files.ReadDir(strings.TrimSuffix(netClass, "/"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range all {
		_, notBridge := f.m.Files.ReadDir(netClass + name + "/bridge")
		_, hasQueues := f.m.Files.ReadDir(netClass + name + "/queues")
		if name != "lo" && notBridge != nil && hasQueues == nil {
			names = append(names, name)
		}
	}
	return names, nil
}

// linkTimeout is how long a driver may take to bring its link up again after a change.
const linkTimeout = 20 * time.Second

// awaitLinks waits until the links that a driver took down for a change are up again.
func (f *Facts) awaitLinks(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, linkTimeout)
	defer cancel()
	for _, n := range f.NICs {
		for carrier := "0"; n.Driver != "" && carrier == "0"; time.Sleep(20 * time.Millisecond) {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("the link of %s has been down since its settings were changed: %w", n.Name, err)
			}
			now, _ := f.m.Files.ReadFile(netClass + n.Name + "/carrier") // an error: the interface is not up
			carrier = tidy(string(now))
		}
	}
	return nil
}

// read returns the value at the place. It returns a *NotApplicable if the place does not
// exist, and an *unreadable for other errors.
func (f *Facts) read(p Place) (string, error) {
	value, err := f.m.Read(f.ctx, p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", notApplicable("this machine has no %s", p)
	case err != nil:
		return "", &unreadable{err}
	}
	return tidy(value), nil
}

// has reports whether the file can be read.
func (f *Facts) has(path string) bool {
	_, err := f.m.Files.ReadFile(path)
	return err == nil
}

// change returns the change of one place from its current value to another.
func (f *Facts) change(p Place, to string) (Change, error) {
	from, err := f.read(p)
	return Change{Place: p, From: from, To: to}, err
}

// nics returns the interfaces to tune and the other devices of the path, or a
// *NotApplicable if there is none.
func (f *Facts) nics() ([]NIC, error) {
	all := slices.Concat(f.NICs, f.Path)
	if len(all) == 0 && f.m.Namespace {
		return nil, notApplicable("the namespace's interfaces cannot be read: that needs the right to mount /sys")
	}
	if len(all) == 0 {
		return nil, &NotApplicable{Reason: "no interface has the default route", Remedy: "name one with --nic"}
	}
	return all, nil
}

// each plans every interface and collects the changes. If no interface has any, it returns
// the first interface's reason.
func (f *Facts) each(plan func(n NIC) ([]Change, error)) (Proposal, error) {
	nics, err := f.nics()
	if err != nil {
		return Proposal{}, err
	}
	var p Proposal
	var reason error
	for _, nic := range nics {
		changes, err := plan(nic)
		if err != nil && asNotApplicable(err) == nil {
			return p, err
		}
		if err != nil && reason == nil {
			reason = err
		}
		p.Changes = append(p.Changes, changes...)
	}
	if len(p.Changes) == 0 {
		return p, reason
	}
	return p, nil
}
