// Package clocktest sets the wall clock in the eyes of the code under test. Only tests
// use it. Next: clocktest.go.
package clocktest

import (
	"testing"
	"time"
	"unsafe"
)

// Steps are what is done to a machine's clock meanwhile, time.Duration.
var Steps = map[string]time.Duration{"kept": 0, "set back by a day": -24 * time.Hour, "set ahead by a day": 24 * time.Hour}

// Before is a reading of the clocks, as by time.Now, as it would have been had the wall
// clock been set by step since; of whole seconds. The monotonic clock, which nobody sets,
// stays.
func Before(t testing.TB, now time.Time, step time.Duration) time.Time {
	t.Helper()
	// The second word of a time.Time with a monotonic reading is that; the first holds the
	// wall clock's seconds from bit 30 on.
	then := now
	*(*uint64)(unsafe.Pointer(&then)) -= uint64(step/time.Second) << 30
	if then.Sub(now) != 0 || now.Round(0).Sub(then.Round(0)) != step {
		t.Fatalf("time.Time is not what it was: %v less %v is %v", now, step, then)
	}
	return then
}
