package sysmon

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/cnibench/cnibench/internal/testutil/clocktest"
)

// The snapshots of a recording are as far apart as they were, and later ones later,
// whatever is done to the machine's clock meanwhile.
func TestRecorderGoesByASteadyClock(t *testing.T) {
	for name, step := range clocktest.Steps {
		r, err := newRecorder(Options{Root: Root{Proc: fstest.MapFS{}, Sys: fstest.MapFS{}}})
		if err != nil {
			t.Fatal(err)
		}
		first := r.snapshot()
		r.origin = clocktest.Before(t, r.origin.Add(-time.Minute), step)
		second := r.snapshot()
		if apart := second.Sub(first); apart < time.Minute || apart > 2*time.Minute {
			t.Errorf("clock %s: two snapshots a minute apart are %v apart", name, apart)
		}
	}
}
