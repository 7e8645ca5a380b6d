package tune

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/host"
)

// tunedDaemon answers as tuned 2.20's tuned-adm does.
type tunedDaemon struct {
	profile string // "" for none
	mode    string
	stopped bool
}

func (d *tunedDaemon) run(command string) (string, error) {
	argv := strings.Fields(command)
	switch {
	case argv[0] == "systemctl" && d.stopped:
		return "LoadState=loaded\nActiveState=inactive\n", nil
	case argv[0] == "systemctl":
		return "LoadState=loaded\nActiveState=active\n", nil
	case argv[1] == "active" && d.profile == "":
		return "No current active profile.\n", &host.ExitError{Command: command, Code: 1}
	case argv[1] == "active" && d.stopped:
		return "It seems that tuned daemon is not running, preset profile is not activated.\nPreset profile: " + d.profile + "\n", nil
	case argv[1] == "active":
		return "Current active profile: " + d.profile + "\n", nil
	case argv[1] == "profile_mode":
		return "Profile selection mode: " + d.mode + "\n", nil
	case argv[1] == "profile":
		d.profile, d.mode = strings.Join(argv[2:], " "), "manual"
	case argv[1] == "auto_profile":
		d.profile, d.mode = "virtual-guest", "auto"
	case argv[1] == "off":
		d.profile = ""
	}
	return "", nil
}

// Every profile comes back as it was, one that tuned has chosen as its choice.
func TestTunedRevert(t *testing.T) {
	for _, before := range []tunedDaemon{
		{profile: "balanced", mode: "manual"},
		{profile: "balanced powersave", mode: "manual"},
		{profile: "virtual-guest", mode: "auto"},
		{mode: "manual"},
	} {
		t.Run(before.profile+" "+before.mode, func(t *testing.T) {
			m, _ := build(t, shapes["laptop"])
			d := before
			m.Programs = programs(d.run)
			j := journalOf(t, m, t.TempDir())
			applyAll(t, m, j, "tuned")
			if d.profile != "network-latency" || d.mode != "manual" {
				t.Fatalf("%+v", d)
			}
			d.stopped = true
			if r, err := Revert(t.Context(), m, j, 0, false); err != nil || len(r.Failed) != 1 || len(j.Entries()) != 1 {
				t.Errorf("with a stopped daemon: %+v, %v", r, err)
			}
			d.stopped = false
			if r, err := Revert(t.Context(), m, j, 0, false); err != nil || len(r.Restored) != 1 || d != before {
				t.Errorf("%+v, %v; %+v", r, err, d)
			}
		})
	}
}

// A tuned that does not run, or says what nobody understands, is left alone.
func TestTunedPlan(t *testing.T) {
	for name, c := range map[string]struct {
		run  programs
		want string
	}{
		"preset profile":   {(&tunedDaemon{profile: "balanced", stopped: true}).run, "tuned does not run"},
		"stopped and none": {(&tunedDaemon{stopped: true}).run, "tuned does not run"},
		"not installed":    {func(string) (string, error) { return "", &host.ProgramError{Program: "tuned-adm"} }, "not installed"},
		"another language": {func(string) (string, error) { return "Profil actif : balanced\n", nil }, `says "Profil actif : balanced"`},
		"no such mode":     {(&tunedDaemon{profile: "balanced", mode: "lunar"}).run, `says "Profile selection mode: lunar"`},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := build(t, shapes["laptop"])
			m.Programs = c.run
			if item := planOf(t, m, "tuned")[0]; item.State != StateNotApplicable || !strings.Contains(item.Reason, c.want) {
				t.Errorf("%s: %s", item.State, item.Reason)
			}
		})
	}
}
