package workload

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/result"
)

// steady is a Sliceable that measures nothing and says the same every time.
type steady struct {
	fails  error
	slices [][2]time.Duration // lead and length of each
	closed int
}

func (f *steady) Open(context.Context, *Session) (Slicer, error) { return f, nil }

func (f *steady) Slice(_ context.Context, lead, length time.Duration, begin, end func()) (Slice, error) {
	f.slices = append(f.slices, [2]time.Duration{lead, length})
	begin()
	end()
	return Slice{Elapsed: length, Metrics: map[string]float64{result.Goodput: 1e9}}, f.fails
}

func (f *steady) Close(func(int) bool) (Outcome, error) {
	f.closed++
	return Outcome{Metrics: map[string]float64{result.Goodput: 1e9}}, nil
}

func TestDriveInOneSlice(t *testing.T) {
	broken := errors.New("the client ended")
	for _, fails := range []error{nil, broken} {
		s, marks, w := loopback(t), &window{}, &steady{fails: fails}
		s.Begin, s.End = marks.begin, marks.end
		out, err := driveInOneSlice(t.Context(), s, w)
		if !errors.Is(err, fails) {
			t.Errorf("error %v, want %v", err, fails)
		}
		if diff := cmp.Diff(map[string]float64{result.Goodput: 1e9}, out.Metrics); diff != "" {
			t.Errorf("metrics (-want +got):\n%s", diff)
		}
		if len(w.slices) != 1 || w.slices[0] != [2]time.Duration{s.Warmup, s.Duration} || w.closed != 1 {
			t.Errorf("slices %v, closed %d times; want one of %v and %v, closed once", w.slices, w.closed, s.Warmup, s.Duration)
		}
		if len(marks.begins) != 1 || len(marks.ends) != 1 {
			t.Errorf("%d begins and %d ends of the window", len(marks.begins), len(marks.ends))
		}
	}
}
