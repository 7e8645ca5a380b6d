package tune

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// irqbalance stops irqbalance, so that interrupts stay where they were bound.
var irqbalance = Setting{
	Name:    "irqbalance",
	Summary: "irqbalance stopped",
	Why:     "it moves interrupts between CPUs every ten seconds, which undoes their binding and lengthens the tail of latencies",
	Studies: []string{"2016", "kube-ovn"},
	Source:  "irqbalance(1)",
	Cost:    "interrupts of other devices stay where they are too; it starts again at a reboot unless disabled",
	Avoid:   "when interrupts are not bound instead (setting irq)",
	Scope:   ScopeMachine,
	Plan: func(f *Facts, _ Params) (Proposal, error) {
		place := Place{Service, "irqbalance"}
		from, err := f.m.serviceState(f.ctx, place.Name)
		if err == nil {
			return Proposal{Changes: []Change{{place, from, "inactive"}}}, nil
		}
		if pid := f.process("irqbalance"); pid != 0 {
			return Proposal{Advice: []string{fmt.Sprintf("irqbalance runs (process %d), but not as a service of systemd: stop it yourself, cnibench ends no process", pid)}}, nil
		}
		return Proposal{}, notApplicable("irqbalance does not run here")
	},
}

// process returns the number of a process of that name, or 0.
func (f *Facts) process(name string) int {
	entries, _ := f.m.Files.ReadDir("/proc") // an error: no /proc
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

// serviceState returns "active" or "inactive". The error wraps fs.ErrNotExist if systemd
// does not know the service, but not if systemd does not answer.
func (m *Machine) serviceState(ctx context.Context, name string) (string, error) {
	out, err := m.run(ctx, "", "systemctl", "show", "--property=LoadState,ActiveState", name)
	if err != nil {
		return "", err
	}
	state := splitLabels(out, "=")
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

// splitLabels returns the text of each line after its label, by label.
func splitLabels(out, separator string) map[string]string {
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
