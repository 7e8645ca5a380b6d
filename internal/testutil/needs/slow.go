package needs

import (
	"os"
	"strings"
	"testing"
)

// SlowEnv is set by make test-slow.
const SlowEnv = "CNIBENCH_TEST_SLOW"

// Slow skips a test that takes long because of what it does, which says why: it measures
// for real, or drives a browser. make test-slow, a part of CI, runs every test that
// calls it (scripts/test-packages finds the call in the test itself).
func Slow(t testing.TB, why string) {
	t.Helper()
	if name, _, sub := strings.Cut(t.Name(), "/"); sub {
		t.Fatalf("call it in %s itself, where scripts/test-packages looks for it", name)
	}
	if os.Getenv(SlowEnv) == "" {
		t.Skip(why + "; to run it: " + SlowEnv + "=1 go test -run " + t.Name() + ", or make test-slow")
	}
}

// Whole is whether simulations and searches run whole, as in CI: elsewhere they run small,
// with limits that hold for what is left.
func Whole() bool { return os.Getenv("CI") == "true" }

// Trials is how often a simulation is repeated: whole in CI, small elsewhere.
func Trials(whole, small int) int {
	if Whole() {
		return whole
	}
	return small
}
