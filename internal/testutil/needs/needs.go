// Package needs tells a test that the machine lacks something that the test
// needs. It is for tests only, and knows nothing of what they test. Next: program.go.
package needs

import (
	"os"
	"strings"
	"testing"
)

// Missing skips the test with the reason, which names the command that would
// run it. In CI everything is there, so that the test fails instead.
func Missing(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// GuestEnv is set by make test-guest.
const GuestEnv = "CNIBENCH_TEST_GUEST"

// Guest skips a test that boots an emulated machine, but in make test-guest,
// which finds the test by its name.
func Guest(t testing.TB) {
	t.Helper()
	testGuest(t, "Guest", "boots a guest")
}

// Flanneld skips a test that wants flannel's own daemon, which takes minutes
// to build, but in make test-guest, which finds the test by its name.
func Flanneld(t testing.TB) {
	t.Helper()
	testGuest(t, "Flanneld", "wants flannel's own daemon")
}

func testGuest(t testing.TB, word, why string) {
	t.Helper()
	if !strings.Contains(t.Name(), word) {
		t.Fatalf("%s: the test's name must hold %q, by which make test-guest finds it", why, word)
	}
	if os.Getenv(GuestEnv) == "" {
		t.Skip(why + "; to run it: make test-guest")
	}
}
