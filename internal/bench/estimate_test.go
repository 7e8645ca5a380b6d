package bench

import (
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/testutil/clocktest"
)

// The time that a run still takes does not change with the machine's clock.
func TestEstimateGoesByASteadyClock(t *testing.T) {
	for name, step := range clocktest.Steps {
		e := &estimate{total: 4, done: 1, begin: clocktest.Before(t, time.Now().Add(-time.Minute), step)}
		if left := e.now("").Remaining; left < 3*time.Minute || left > 4*time.Minute {
			t.Errorf("clock %s: %v left of 4 minutes, after the first", name, left)
		}
	}
}
