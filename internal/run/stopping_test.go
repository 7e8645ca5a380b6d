package run

import (
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/clocktest"
	"github.com/cnibench/cnibench/internal/result"
)

// A run ends when its time is over, whatever is done to the machine's clock meanwhile.
func TestStoppingGoesByASteadyClock(t *testing.T) {
	for name, step := range clocktest.Steps {
		for over, begun := range map[bool]time.Duration{false: 10 * time.Minute, true: time.Hour - time.Second} {
			s := newStopping(&Request{}, &result.Plan{MaxTime: 3600}, 0, nil, func(string) {})
			s.begun = clocktest.Before(t, time.Now().Add(-begun), step)
			s.last = clocktest.Before(t, time.Now().Add(-5*time.Minute), step)
			if s.enough(s.least) != over {
				t.Errorf("clock %s, %v after the begin of an hour: over is %v", name, begun, !over)
			}
			if s.longest < 5*time.Minute || s.longest > 6*time.Minute {
				t.Errorf("clock %s: a round of 5 minutes took %v", name, s.longest)
			}
		}
	}
}

// The time that is asked for is that of both parts of a run.
func TestStoppingLeavesTheGuestTime(t *testing.T) {
	plan := &result.Plan{Contenders: make([]result.Entry, 6)}
	f := &Request{MaxTime: 9 * time.Minute, Given: map[string]bool{"max-time": true}}
	for left, want := range map[int]time.Duration{2: 6 * time.Minute, 0: 9 * time.Minute} {
		if s := newStopping(f, plan, left, nil, func(string) {}); s.most != want {
			t.Errorf("a guest has %d: the native part has %v, want %v", left, s.most, want)
		}
	}
}
