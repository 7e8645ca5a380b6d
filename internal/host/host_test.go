package host

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestCommandString(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"ip", "link"}, "ip link"},
		{[]string{"sh", "-c", "echo 'a b'"}, `sh -c 'echo '\''a b'\'''`},
		{[]string{"x", ""}, "x ''"},
	} {
		if got := (Command{Argv: c.argv}).String(); got != c.want {
			t.Errorf("%q prints %s, want %s", c.argv, got, c.want)
		}
	}
}

func TestLocal(t *testing.T) {
	var out bytes.Buffer
	p, err := Local{}.Start(t.Context(), Command{Argv: []string{"sh", "-c", "echo $A; cat"}, Env: []string{"A=b"}, Stdin: strings.NewReader("in"), Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil || out.String() != "b\nin" {
		t.Errorf("printed %q, error %v", out.String(), err)
	}
}

func TestExitError(t *testing.T) {
	for script, want := range map[string]struct {
		code int
		text string
	}{
		"echo why >&2; exit 3": {3, "sh -c 'echo why >&2; exit 3': exit status 3: why"},
		"kill -9 $$":           {137, "sh -c 'kill -9 $$': exit status 137"},
	} {
		p, err := Local{}.Start(t.Context(), Command{Argv: []string{"sh", "-c", script}})
		if err != nil {
			t.Fatal(err)
		}
		var exit *ExitError
		if err := p.Wait(); !errors.As(err, &exit) || exit.Code != want.code || err.Error() != want.text {
			t.Errorf("%s: %v, want %d %q", script, err, want.code, want.text)
		}
	}
}

func TestMissingProgram(t *testing.T) {
	_, err := Local{}.Start(t.Context(), Command{Argv: []string{"cnibench-no-such-program"}})
	var missing *ProgramError
	if !errors.As(err, &missing) || missing.Program != "cnibench-no-such-program" {
		t.Errorf("error %v", err)
	}
	if got := (&ProgramError{Program: "qperf", Remedy: "install it with: apt-get install qperf"}).Error(); got != "qperf: program not found; install it with: apt-get install qperf" {
		t.Error(got)
	}
}

// Of each distribution, and of one that is derived from it.
func TestDistributionOf(t *testing.T) {
	for release, want := range map[string]string{
		"ID=debian\n": "install it with: apt-get install nginx-light",
		"NAME=\"Rocky Linux\"\nID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n": "install it with: dnf install nginx-core",
		"ID=arch\n":     "install it with: pacman -S nginx",
		"ID='alpine'\n": "install it with: apk add nginx",
		"":              "install it with: apt-get install nginx-light",
	} {
		if got := distributionOf(release).Remedy("nginx"); got != want {
			t.Errorf("%q: %s, want %s", release, got, want)
		}
	}
	if got := distributionOf("ID=arch").Remedy("qperf"); got != "" {
		t.Errorf("Arch has no qperf, but: %s", got)
	}
}

// The end of the context ends the command and its own children.
func TestContextEndsGroup(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	p, err := Local{}.Start(ctx, Command{Argv: []string{"sh", "-c", "sleep 1000 & wait"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err == nil {
		t.Error("a command outlived its context")
	}
}
