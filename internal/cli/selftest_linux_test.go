package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/selftest"
	"github.com/cnibench/cnibench/internal/selftest/plant"
	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// shortSelfTest makes a self-test of one round, and returns its trials by name. What
// needs an interval is not found by one round, so that exit code 4 is no fault.
func shortSelfTest(t *testing.T, args ...string) map[string]selftest.Trial {
	t.Helper()
	out, err := exec.Command(program, append([]string{"selftest", "--rounds", "1", "--json"}, args...)...).Output()
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
	trials := map[string]selftest.Trial{}
	for _, trial := range r.Trials {
		trials[trial.Name] = trial
		t.Logf("%v %s: %s%s", trial.Passed, trial.Name, trial.Found, trial.LeftOut)
	}
	return trials
}

// A short self-test finds what needs no interval, however busy the machine is, and
// leaves nothing.
func TestSelfTest(t *testing.T) {
	needs.Slow(t, "measures planted faults")
	unchanged(t)
	found := shortSelfTest(t)
	foundFaults(t, found)
	for _, name := range []string{"diagnosis: offload-off", "diagnosis: rate-limited", "diagnosis: sound"} {
		if found[name].Found == "" { // a busy machine may hide what is planted, and never that it was looked for
			t.Errorf("%s: %+v", name, found[name])
		}
	}
}

// foundFaults fails the test without the planted packet size and at least the planted
// loss: a busy machine loses datagrams of its own, which the self-test says, too.
func foundFaults(t *testing.T, found map[string]selftest.Trial) {
	t.Helper()
	if !found["packet size"].Passed {
		t.Errorf("packet size: %+v", found["packet size"])
	}
	var percent float64
	if _, err := fmt.Sscanf(found["loss"].Found, "%f %%", &percent); err != nil || percent < 100*plant.Loss-0.3 {
		t.Errorf("loss: %+v: %v", found["loss"], err)
	}
}

// The same in a guest, whose lab is of another kernel.
func TestSelfTestGuest(t *testing.T) {
	needs.Guest(t)
	foundFaults(t, shortSelfTest(t, "--arena", "microvm"))
}

// In a cluster the twins are pairs of pods, and with --privileged the pods plant faults
// in their own network. TestJudge has what is left out without it.
func TestKubeSelfTest(t *testing.T) {
	leavesNothing(t)
	allowed := shortSelfTest(t, append(podArgs(t), "--privileged")...)
	if allowed["busy neighbour"].LeftOut == "" {
		t.Error("a cluster's nodes have a busy neighbour")
	}
	for _, name := range []string{"twins: goodput", "twins: network_time_p50"} {
		if !strings.Contains(allowed[name].Found, "times this-cluster") {
			t.Errorf("%s: %+v", name, allowed[name])
		}
	}
	foundFaults(t, allowed)
}
