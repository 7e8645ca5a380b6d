package cli

import (
	"encoding/json"
	"errors"
	"os/exec"
	"testing"

	"github.com/cnibench/cnibench/internal/selftest"
)

// A short self-test finds what needs no interval, however busy the machine is, and
// leaves nothing.
func TestSelfTest(t *testing.T) {
	unchanged(t)
	out, err := exec.Command(program, "selftest", "--rounds", "1", "--json").Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 4) {
		t.Fatalf("%v\n%s", err, exit.Stderr)
	}
	var r selftest.Result
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if r.Schema != selftest.Schema || r.Passed != (err == nil) {
		t.Errorf("schema %q, passed %v with %v", r.Schema, r.Passed, err)
	}
	found := map[string]bool{}
	for _, trial := range r.Trials {
		found[trial.Name] = trial.Passed
		t.Logf("%v %s: %s", trial.Passed, trial.Name, trial.Found)
	}
	for _, name := range []string{"loss", "packet size"} {
		if !found[name] {
			t.Errorf("%s was not found", name)
		}
	}
}
