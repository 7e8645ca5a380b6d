package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/host"
)

// tuned selects a profile of tuned, the distribution's own tuning daemon.
var tuned = Setting{
	Name:    "tuned",
	Summary: "profile of tuned",
	Why:     "sets governor, C-states, busy polling and memory for latency or for throughput at once",
	Studies: []string{"2016", "kube-ovn"},
	Source:  "tuned-profiles(7); github.com/redhat-performance/tuned profiles/network-latency",
	Cost:    "changes a dozen values, among them some of this list; stays after a reboot",
	Avoid:   "where another tool manages these values",
	Scope:   ScopeMachine,
	Params:  []Param{{"profile", "network-latency", "network-latency or network-throughput"}},
	Plan: func(f *Facts, p Params) (Proposal, error) {
		place := Place{Tuned, "profile"}
		from, err := f.m.tunedProfile(f.ctx)
		switch {
		case missing(err):
			return Proposal{}, &NotApplicable{Reason: "tuned is not installed", Remedy: cmp.Or(host.ThisDistribution().Remedy("tuned-adm"), "install it") + ", or choose settings from this list one by one"}
		case errors.Is(err, errTunedStopped):
			return Proposal{}, notApplicable("%v", err)
		case err != nil:
			return Proposal{}, notApplicable("tuned does not answer: %v", err)
		}
		return Proposal{Changes: []Change{{place, from, p["profile"]}}}, nil
	},
}

var errTunedStopped = errors.New("tuned does not run; start it: systemctl start tuned")

// tunedProfile returns the active profile, "auto" if tuned chose it itself, or "off". It
// returns errTunedStopped if tuned does not run.
func (m *Machine) tunedProfile(ctx context.Context) (string, error) {
	out, err := m.run(ctx, "", "tuned-adm", "active")
	active := splitLabels(out, ":")
	switch {
	case missing(err):
		return "", err
	case active["Preset profile"] != "":
		return "", errTunedStopped
	case strings.Contains(out, "No current active profile"): // exit code 1; a stopped tuned says the same
		switch state, err := m.serviceState(ctx, "tuned"); {
		case err != nil:
			return "", fmt.Errorf("it has no active profile, and systemd does not say whether it runs: %w", err)
		case state != "active":
			return "", errTunedStopped
		}
		return "off", nil
	case err != nil || active["Current active profile"] == "":
		return "", cmp.Or(err, fmt.Errorf("tuned-adm active says %q", tidy(out)))
	}
	out, err = m.run(ctx, "", "tuned-adm", "profile_mode")
	switch mode := splitLabels(out, ":")["Profile selection mode"]; {
	case err != nil || mode != "auto" && mode != "manual":
		return "", cmp.Or(err, fmt.Errorf("tuned-adm profile_mode says %q", tidy(out)))
	case mode == "auto":
		return mode, nil
	}
	return active["Current active profile"], nil
}

func (m *Machine) setTunedProfile(ctx context.Context, profile string) error {
	argv := []string{"tuned-adm"}
	switch profile {
	case "off":
		argv = append(argv, "off")
	case "auto":
		argv = append(argv, "auto_profile")
	default:
		argv = append(append(argv, "profile"), strings.Fields(profile)...)
	}
	_, err := m.run(ctx, "", argv...)
	return err
}
