package tune

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// irqbalance off leaves interrupts where they were bound.
var irqbalance = Setting{
	Name:    "irqbalance",
	Summary: "irqbalance stopped",
	Why:     "it moves interrupts between CPUs every ten seconds, which undoes binding and shows in the tail of latencies",
	Studies: []string{"2016", "kube-ovn"},
	Source:  "irqbalance(1)",
	Cost:    "interrupts of other devices stay where they are, too; it comes back with a reboot unless disabled",
	Avoid:   "when interrupts are not bound instead (setting irq)",
	Scope:   ScopeMachine,
	Plan: func(f *Facts, _ Params) (Proposal, error) {
		place := Place{Service, "irqbalance"}
		from, err := f.m.serviceState(f.ctx, place.Name)
		if err == nil {
			return Proposal{Changes: []Change{{place, from, "inactive"}}}, nil
		}
		if pid := f.process("irqbalance"); pid != 0 {
			return Proposal{Advice: []string{fmt.Sprintf("irqbalance runs (process %d) and systemd does not answer for it: stop it yourself, cnibench ends no process", pid)}}, nil
		}
		return Proposal{}, notApplicable("irqbalance does not run here")
	},
}

// process is the number of a process of that name, or 0.
func (f *Facts) process(name string) int {
	entries, _ := f.m.Files.ReadDir("/proc") // none where there is no /proc
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry)
		if err != nil {
			continue
		}
		comm, err := f.m.Files.ReadFile("/proc/" + entry + "/comm")
		if err == nil && tidy(string(comm)) == name {
			return pid
		}
	}
	return 0
}

// serviceState is active or inactive. A service that systemd does not know is
// an fs.ErrNotExist; a systemd that does not answer is not.
func (m *Machine) serviceState(ctx context.Context, name string) (string, error) {
	out, err := m.run(ctx, "", "systemctl", "show", "--property=LoadState,ActiveState", name)
	if err != nil {
		return "", err
	}
	state := labelled(out, "=")
	if state["LoadState"] == "not-found" {
		return "", fmt.Errorf("systemd has no service %s: %w", name, fs.ErrNotExist)
	}
	switch state["ActiveState"] {
	case "active", "reloading", "refreshing", "activating":
		return "active", nil
	case "inactive", "failed", "deactivating":
		return "inactive", nil
	}
	return "", fmt.Errorf("systemctl show %s says %q", name, tidy(out))
}

// labelled is the text of each line after its label.
func labelled(out, separator string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(out) {
		if label, value, ok := strings.Cut(line, separator); ok {
			values[tidy(label)] = tidy(value)
		}
	}
	return values
}

func (m *Machine) setService(ctx context.Context, name, state string) error {
	verb := "stop"
	if state == "active" {
		verb = "start"
	}
	_, err := m.run(ctx, "", "systemctl", verb, name)
	return err
}
