package tune

import (
	"context"
	"strings"
)

// tuned is the distribution's own tuning daemon.
var tuned = Setting{
	Name:    "tuned",
	Summary: "profile of tuned",
	Why:     "sets governor, C-states, busy polling and memory for latency or for throughput at once",
	Studies: []string{"2016", "kube-ovn"},
	Source:  "tuned-profiles(7); github.com/redhat-performance/tuned profiles/network-latency",
	Cost:    "changes a dozen values of its own, among them some of this list; stays after a reboot",
	Avoid:   "where another tool manages these values",
	Scope:   ScopeMachine,
	Params:  []Param{{"profile", "network-latency", "network-latency or network-throughput"}},
	Plan: func(f *Facts, p Params) (Proposal, error) {
		place := Place{Tuned, "profile"}
		from, err := f.m.tunedProfile(f.ctx)
		if missing(err) {
			return Proposal{}, &NotApplicable{Reason: "tuned is not installed", Remedy: "apt-get install tuned, or take its settings one by one from this list"}
		}
		if err != nil {
			return Proposal{}, notApplicable("tuned does not answer: %v", err)
		}
		return Proposal{Changes: []Change{{place, from, p["profile"]}}}, nil
	},
}

// tunedProfile is the active profile, or "off".
func (m *Machine) tunedProfile(ctx context.Context) (string, error) {
	out, err := m.run(ctx, "", "tuned-adm", "active")
	if name, ok := strings.CutPrefix(out, "Current active profile: "); ok {
		name, _, _ = strings.Cut(name, "\n")
		return tidy(name), nil
	}
	if strings.HasPrefix(out, "No current active profile") {
		return "off", nil
	}
	return "", err
}

func (m *Machine) setTunedProfile(ctx context.Context, profile string) error {
	argv := []string{"tuned-adm", "off"}
	if profile != "off" {
		argv = append([]string{"tuned-adm", "profile"}, strings.Fields(profile)...)
	}
	_, err := m.run(ctx, "", argv...)
	return err
}
