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
	// Open starts the server and the client, and opens the connections. It sends no
	// load. The Slicer must be closed, also after an error of Slice. The session's
	// Warmup, Duration, Begin and End are not used.
	Open(ctx context.Context, s *Session) (Slicer, error)
}

// Slicer is an opened load. It takes one slice at a time.
type Slicer interface {
	// Slice loads the path for lead, which is not measured, and then for length. begin
	// and end, if not nil, are called at the begin and the end of length. After an
	// error of ctx the Slicer can only be closed.
	Slice(ctx context.Context, lead, length time.Duration, begin, end func()) (Slice, error)
	// Close ends client and server and returns the outcome of all slices for which isUsed
	// is true: percentiles come from merged histograms, rates from sums. Slices are numbered
	// from 0 in the order of the calls, failed slices included. If isUsed is nil, all slices
	// are used. If no slice is used, the Outcome has no metrics.
	Close(isUsed func(slice int) bool) (Outcome, error)
}

// Slice is what one slice measured.
type Slice struct {
	Elapsed time.Duration      // of the measured part, by the clock that the metrics are from
	Metrics map[string]float64 // those that one slice gives, by name in result's catalogue, SI units
	Faults  []result.Reason    // why the slice must not be used
}

// driveInOneSlice drives a Sliceable with one slice: the session's warm-up is its lead.
func driveInOneSlice(ctx context.Context, s *Session, w Sliceable) (Outcome, error) {
	opened, err := w.Open(ctx, s)
	if err != nil {
		return Outcome{}, err
	}
	_, err = opened.Slice(ctx, s.Warmup, s.Duration, s.Begin, s.End)
	out, closeErr := opened.Close(nil)
	return out, errors.Join(err, closeErr)
}
