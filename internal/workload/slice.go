package workload

import (
	"context"
	"errors"
	"time"

	"github.com/cnibench/cnibench/internal/result"
)

// Sliceable is a workload whose load can pause and go on over connections that
// stay open.
type Sliceable interface {
	// Open starts the server and the client, and opens the connections. Nothing is
	// sent yet. What it returns must be closed, also after an error of Slice.
	// The session's Warmup, Duration, Begin and End are not used.
	Open(ctx context.Context, s *Session) (Slicer, error)
}

// Slicer is an opened load. It takes one slice at a time.
type Slicer interface {
	// Slice loads the path for lead, which does not count, and then for length,
	// which does. begin and end, if not nil, are called at the borders of what
	// counts. After an error of ctx the Slicer can only be closed.
	Slice(ctx context.Context, lead, length time.Duration, begin, end func()) (Slice, error)
	// Close ends client and server and returns what those slices measured together
	// for which counts says true: percentiles come from merged histograms, rates
	// from sums. Slices are numbered from 0 in the order of the calls, failed ones
	// included; a nil counts takes all. An Outcome without metrics is that of a load
	// without a slice.
	Close(counts func(slice int) bool) (Outcome, error)
}

// Slice is what one slice measured.
type Slice struct {
	Elapsed time.Duration      // of what counts, by the clock that the metrics are from
	Metrics map[string]float64 // by name in result's catalogue, SI units; what can be had from one slice
	Faults  []result.Reason    // why this slice must not be used
}

// driveInOneSlice is the Drive of a Sliceable: the session's warm-up is the lead.
func driveInOneSlice(ctx context.Context, s *Session, w Sliceable) (Outcome, error) {
	opened, err := w.Open(ctx, s)
	if err != nil {
		return Outcome{}, err
	}
	_, err = opened.Slice(ctx, s.Warmup, s.Duration, s.Begin, s.End)
	out, closeErr := opened.Close(nil)
	return out, errors.Join(err, closeErr)
}
