package transfer

import (
	"context"
	"fmt"
	"time"
)

// Plan says how often to fetch.
type Plan struct {
	FileBytes int64         // of the file, checked after every transfer
	Warmup    time.Duration // whole transfers until this has passed are not counted
	Duration  time.Duration // transfers start until this has passed in the window
	// Begin and End are called once each, when the window begins and ends.
	Begin, End func()
}

// Repeat fetches the whole file again and again and keeps none of it. The window begins
// with the start of a transfer and ends with the end of the transfer that runs when the
// duration has passed. So the window holds whole transfers only, at least one, and a slow
// path makes it longer than planned. After an error the report has the transfers before.
func Repeat(ctx context.Context, c Client, p Plan) (*Report, error) {
	r := &Report{Schema: ReportSchema, FileBytes: p.FileBytes}
	for start := time.Now(); time.Since(start) < p.Warmup; {
		if _, err := c.Fetch(ctx, ""); err != nil {
			return r, fmt.Errorf("a transfer of the warm-up: %w", err)
		}
	}
	p.Begin()
	defer p.End()
	start := time.Now()
	for {
		t, err := c.Fetch(ctx, "")
		if err != nil {
			return r, fmt.Errorf("transfer %d of the window: %w", len(r.Transfers)+1, err)
		}
		r.Transfers = append(r.Transfers, t)
		if passed := time.Since(start); passed >= p.Duration {
			r.Window = passed.Seconds()
			return r, nil
		}
	}
}

// Verify fetches the file once to a path, where there must be room for it, compares
// every byte with what Write wrote, and removes the file.
func Verify(ctx context.Context, c Client, to string, size int64) error {
	defer remove(to)
	if _, err := c.Fetch(ctx, to); err != nil {
		return fmt.Errorf("the transfer to verify: %w", err)
	}
	return Check(to, size)
}
