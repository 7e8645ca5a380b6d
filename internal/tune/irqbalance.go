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
			return Proposal{Advice: []string{fmt.Sprintf("irqbalance runs without a service manager (process %d): stop it yourself, cnibench ends no process", pid)}}, nil
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

// serviceState is active or inactive. A service that systemd does not know, or
// no systemd, is an fs.ErrNotExist.
func (m *Machine) serviceState(ctx context.Context, name string) (string, error) {
	out, err := m.run(ctx, "", "systemctl", "show", "--property=LoadState,ActiveState", name)
	if err != nil {
		return "", fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	state := map[string]string{}
	for line := range strings.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		state[key] = value
	}
	switch {
	case state["LoadState"] != "loaded":
		return "", fmt.Errorf("service %s is %s: %w", name, state["LoadState"], fs.ErrNotExist)
	case state["ActiveState"] == "active":
		return "active", nil
	}
	return "inactive", nil
}

func (m *Machine) setService(ctx context.Context, name, state string) error {
	verb := "stop"
	if state == "active" {
		verb = "start"
	}
	_, err := m.run(ctx, "", "systemctl", verb, name)
	return err
}
