package tune

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// Facts is what settings are planned from: a machine and what was read of it
// once.
type Facts struct {
	ctx context.Context
	m   *Machine

	Topology *Topology
	// NICs are those that are tuned: those that carry the default route unless
	// the user named others; inside a namespace all that carry packets.
	NICs []NIC
}

// Gather reads the machine. nics are the interfaces to tune; none takes that
// of the default route, of a bond, bridge or VLAN the devices below. Errors: an interface that is not there.
func Gather(ctx context.Context, m *Machine, nics []string) (*Facts, error) {
	f := &Facts{ctx: ctx, m: m}
	var err error
	if f.Topology, err = readTopology(m.Files); err != nil {
		return nil, err
	}
	if len(nics) == 0 {
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

// ports are the devices that carry an interface's packets: those below a bond,
// bridge or VLAN, or the interface itself where none is below.
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
		entries, _ := f.m.Files.ReadDir(netClass + name) // none: nothing is below
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

// carriers are the interfaces that packets arrive on: not the loopback, and
// not a bridge, whose ports they arrive on.
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

// linkPatience is how long a driver may take to find its link up again after a change.
const linkPatience = 20 * time.Second

// awaitLinks waits for the links that a driver took down for a change.
func (f *Facts) awaitLinks(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, linkPatience)
	defer cancel()
	for _, n := range f.NICs {
		for carrier := "0"; n.Driver != "" && carrier == "0"; time.Sleep(20 * time.Millisecond) {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("the link of %s is down since its settings were changed: %w", n.Name, err)
			}
			now, _ := f.m.Files.ReadFile(netClass + n.Name + "/carrier") // an error: it is not up, and has none
			carrier = tidy(string(now))
		}
	}
	return nil
}

// read is what is at the place. A place that is not there makes the setting
// not applicable, with the reason; other errors are *unreadable.
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

// has says that the file is there.
func (f *Facts) has(path string) bool {
	_, err := f.m.Files.ReadFile(path)
	return err == nil
}

// number is a value that must be a whole number.
func (f *Facts) number(p Place) (int, error) {
	text, err := f.read(p)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, &unreadable{fmt.Errorf("%s: %w", p, err)}
	}
	return n, nil
}

// change is the change of one place, as it is now, to a value.
func (f *Facts) change(p Place, to string) (Change, error) {
	from, err := f.read(p)
	return Change{Place: p, From: from, To: to}, err
}

// nics are the interfaces to tune, or the reason why there is none.
func (f *Facts) nics() ([]NIC, error) {
	if len(f.NICs) == 0 && f.m.Namespace {
		return nil, notApplicable("the namespace's interfaces cannot be seen: that needs the right to mount /sys")
	}
	if len(f.NICs) == 0 {
		return nil, &NotApplicable{Reason: "no interface has the default route", Remedy: "name one with --nic"}
	}
	return f.NICs, nil
}

// each plans every interface and gathers what applies; where nothing does, the
// first reason stands for all.
func (f *Facts) each(plan func(n NIC) ([]Change, error)) (Proposal, error) {
	nics, err := f.nics()
	if err != nil {
		return Proposal{}, err
	}
	var p Proposal
	var reason error
	for _, nic := range nics {
		changes, err := plan(nic)
		if err != nil && inapplicable(err) == nil {
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
