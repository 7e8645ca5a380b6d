package selftest

import (
	"testing"
	"time"
)

// The newest self-test is that of this version and kernel alone.
func TestKept(t *testing.T) {
	dir := t.TempDir()
	if k := Newest(dir, "v1", "6.1"); k != nil {
		t.Errorf("before the first one: %v", k)
	}
	at := time.Date(2026, 11, 22, 20, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		trials []Trial
		want   string
	}{
		{[]Trial{{Name: "rate"}, {Name: "loss", Passed: true}, {Name: "busy neighbour", LeftOut: "not watched"}}, "not found on 2026-11-22: rate"},
		{[]Trial{{Name: "rate", Passed: true}}, "passed on 2026-11-22"},
	} {
		if err := (Result{Trials: c.trials}).Keep(dir, "v1", "6.1", at); err != nil {
			t.Fatal(err)
		}
		if k := Newest(dir, "v1", "6.1"); k == nil || k.String() != c.want {
			t.Errorf("%v, want %q", k, c.want)
		}
	}
	if Newest(dir, "v2", "6.1") != nil || Newest(dir, "v1", "6.2") != nil {
		t.Error("a self-test of another version or kernel counts")
	}
}
