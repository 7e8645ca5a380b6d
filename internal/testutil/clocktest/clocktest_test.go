package clocktest_test

import (
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/testutil/clocktest"
)

// What loses the monotonic clock is found.
func TestBefore(t *testing.T) {
	for name, step := range clocktest.Steps {
		begin := clocktest.Before(t, time.Now(), step)
		if took := time.Since(begin); took < 0 || took > time.Minute {
			t.Errorf("%s: by the monotonic clock %v", name, took)
		}
		if took := time.Now().UTC().Sub(begin.UTC()); took < step || took > step+time.Minute {
			t.Errorf("%s: by the wall clock %v", name, took)
		}
	}
}
